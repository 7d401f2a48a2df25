package protocol

import (
	"context"
	"net/http"
	"sync/atomic"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore"
)

// LookFirst wraps a write that its own effect does not prevent from being carried out again: sent twice, it may
// overwrite another writer's change in between. So before each repetition it looks whether the resource is still at the
// base. If it is not, even because of our own write, it returns notMet, and commit judges the write. This leaves a
// window of one request, where a blind repetition leaves one of a whole pause; a condition that the service checks
// would leave none.
//
// wanted, if not empty, is a version that counts as if the write had been carried out, no matter who wrote it.
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

// NotMet returns the response that the service would give if it could check the condition that azconc has checked
// instead. Each is new, because the SDK's type modifies itself when it is printed.
func NotMet() error {
	return &azcore.ResponseError{StatusCode: http.StatusPreconditionFailed, ErrorCode: "ConditionNotMet"}
}
