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

// Prepared is the write that a target has encoded.
type Prepared struct {
	Send Write // sends the request; nil if the value equals that of the base, so that there is nothing to write

	// Stored is what a later look will find of the lineage that the write was to store: all of it, a shortened one, or
	// none. It is the only source of what the write can be recognized by. A write without its entry has an unknown outcome
	// after a lost response, and a conflict is returned without confirmation; one without its operation is refused.
	Stored Lineage
}

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
