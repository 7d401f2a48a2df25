package protocol

import (
	"context"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore"

	"github.com/azconc/azconc/pkg/fence"
)

// Guarded asks the holder before every try, because a request may be sent again a minute after the first.
func Guarded(holder fence.Holder, write Write) Write {
	return func(ctx context.Context) (azcore.ETag, error) {
		if err := holder.Guard(ctx); err != nil {
			return "", err
		}
		return write(ctx)
	}
}
