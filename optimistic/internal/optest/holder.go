package optest

import (
	"context"
	"errors"
	"net"
	"net/http"
	"net/url"
	"syscall"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore"

	"github.com/azconc/azconc/pkg/azerr"
	"github.com/azconc/azconc/pkg/fence"
)

// Holder is a holder of a lock whose state the test sets.
type Holder struct {
	Token fence.Token
	Asked int                         // calls of Guard
	Lost  error                       // the result of Guard: one of LostLocks
	Wait  func(context.Context) error // takes the place of Lost, if it is set
}

// Fence implements fence.Holder.
func (h *Holder) Fence() fence.Token { return h.Token }

// Guard implements fence.Holder. It counts its calls.
func (h *Holder) Guard(ctx context.Context) error {
	h.Asked++
	if h.Wait != nil {
		return h.Wait(ctx)
	}
	return h.Lost
}

// ErrLockLost is in the chain of each of LostLocks.
var ErrLockLost = errors.New("lease lost")

// lostLock has the chain of a *pessimistic.LostError: its sentinel, and what the last renewal met.
type lostLock struct{ renewal error }

func (e lostLock) Error() string   { return "locks/l: lease expired: " + azerr.Summary(e.renewal) }
func (e lostLock) About() string   { return "locks/l" }
func (e lostLock) Unwrap() []error { return []error{ErrLockLost, e.renewal} }

// LostLocks are the errors that Guard of a *pessimistic.Hold returns when the lock is lost, by what the last renewal met.
func LostLocks() map[string]error {
	answer := func(status int, code string) error {
		at := &url.URL{Scheme: "http", Host: "acct.blob.test", Path: "/locks/l"}
		raw := &http.Response{StatusCode: status, Header: http.Header{"X-Ms-Request-Id": {"1"}, "X-Ms-Error-Code": {code}, "Retry-After": {"20"}},
			Request: &http.Request{Method: http.MethodPut, URL: at}}
		return &azcore.ResponseError{StatusCode: status, ErrorCode: code, RawResponse: raw}
	}
	failed := func(err error) error { return &url.Error{Op: "Put", URL: "http://acct.blob.test/locks/l", Err: err} }
	out := map[string]error{}
	for name, err := range map[string]error{
		"timed out":     failed(context.DeadlineExceeded),
		"ended":         failed(context.Canceled),
		"broken off":    failed(&net.OpError{Op: "read", Net: "tcp", Err: syscall.ECONNRESET}),
		"not connected": failed(&net.OpError{Op: "dial", Net: "tcp", Err: syscall.ECONNREFUSED}),
		"busy":          answer(http.StatusServiceUnavailable, "ServerBusy"),
		"timed out too": answer(http.StatusInternalServerError, "OperationTimedOut"),
		"taken":         answer(http.StatusConflict, "LeaseIdMismatchWithLeaseOperation"),
		"changed":       answer(http.StatusPreconditionFailed, "ConditionNotMet"),
		"deleted":       answer(http.StatusNotFound, "BlobNotFound"),
		"forbidden":     answer(http.StatusForbidden, "AuthorizationFailure"),
	} {
		out[name] = lostLock{azerr.Clean(err)}
	}
	return out
}
