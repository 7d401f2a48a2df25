package optimistic

import (
	"context"
	"net/http"
	"sync/atomic"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore"
)

// lookFirst is for a write that its own effect does not stop from being carried out again: sent twice, it may overwrite
// whoever wrote in between. So before each repetition it looks whether the resource is still at the base; if it is not,
// be it by our own write, that is the answer, and the caller finds out which. This leaves a window of one request where
// blind repetition leaves one of a whole pause; a condition that the service checks would leave none.
//
// wanted, if not empty, is the version that is as good as the write having been carried out, whoever did it.
func lookFirst(send Write, base State, wanted azcore.ETag, look func(context.Context) (State, error)) Write {
	var sent atomic.Bool
	return func(ctx context.Context) (azcore.ETag, error) {
		if sent.Swap(true) {
			now, err := look(ctx)
			if err != nil {
				return "", err
			}
			if wanted != "" && now.ETag == wanted {
				return wanted, nil
			}
			if now.Exists != base.Exists || now.ETag != base.ETag {
				return "", notMet()
			}
		}
		return send(ctx)
	}
}

// notMet is the answer that the service would give if it could check the condition that azconc has checked instead.
// Each is new, because the SDK's type writes to itself when it is printed.
func notMet() error {
	return &azcore.ResponseError{StatusCode: http.StatusPreconditionFailed, ErrorCode: "ConditionNotMet"}
}
