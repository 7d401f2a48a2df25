package protocol

import (
	"context"
	"net/http"
	"sync/atomic"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore"

	"github.com/azconc/azconc/pkg/fence"
)

// Write sends one request. It returns the ETag that the request produced, or the service's error unchanged. Every call
// sends the identical request.
type Write func(ctx context.Context) (azcore.ETag, error)

// Guarded wraps a write so that it asks the holder before every try: a request may be sent again a minute after the
// first.
func Guarded(holder fence.Holder, write Write) Write {
	return func(ctx context.Context) (azcore.ETag, error) {
		if err := holder.Guard(ctx); err != nil {
			return "", err
		}
		return write(ctx)
	}
}

// LookFirst wraps a write that does not break its own condition and so can be carried out twice: a repetition may
// overwrite another writer's change made in between. Before each repetition the wrapper looks whether the resource is
// still at base. If it is not, even because of the write itself, the wrapper returns NotMet, and Commit judges the
// write. A change by another writer is then at risk during one request, where a blind repetition puts it at risk during
// a whole pause; a condition that the service checks would leave no risk.
//
// wanted, if not empty, is a version that counts as success, no matter which client wrote it.
func LookFirst(send Write, base State, wanted azcore.ETag, look func(context.Context) (State, error)) Write {
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
				return "", NotMet()
			}
		}
		return send(ctx)
	}
}

// NotMet returns the response that the service would give if it checked the condition that azconc checks in its place.
// Every call returns a new error, because the SDK's type modifies itself when it is printed.
func NotMet() error {
	return &azcore.ResponseError{StatusCode: http.StatusPreconditionFailed, ErrorCode: "ConditionNotMet"}
}
