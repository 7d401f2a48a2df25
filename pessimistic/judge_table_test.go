package pessimistic

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"testing"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore"

	"github.com/azconc/azconc/pkg/azerr"
)

// TestEveryAnswerIsJudged has the answers that a holder can get, by what they say about its lease. Only those that say that
// the lease is gone may end it: any other one leaves the service's state as it is, and ending the lease for it would stop
// work that is still protected.
func TestEveryAnswerIsJudged(t *testing.T) {
	answer := func(status int, code string) error {
		return fmt.Errorf("renew: %w", azerr.Clean(&azcore.ResponseError{StatusCode: status, ErrorCode: code}))
	}
	for _, tt := range []struct {
		err    error
		v      verdict
		reason Reason
	}{
		// The lease was broken.
		{answer(http.StatusConflict, "LeaseIsBrokenAndCannotBeRenewed"), definitive, Broken},
		{answer(http.StatusConflict, "LeaseIsBreakingAndCannotBeChanged"), definitive, Broken},
		{answer(http.StatusConflict, "LeaseAlreadyBroken"), definitive, Broken},

		// Another lease is there, or none.
		{answer(http.StatusConflict, "LeaseIdMismatchWithLeaseOperation"), definitive, Taken},
		{answer(http.StatusPreconditionFailed, "LeaseIdMismatchWithBlobOperation"), definitive, Taken},
		{answer(http.StatusPreconditionFailed, "LeaseIdMismatchWithContainerOperation"), definitive, Taken},
		{answer(http.StatusPreconditionFailed, "LeaseIdMismatchWithFileOperation"), definitive, Taken},
		{answer(http.StatusConflict, "LeaseIdMismatchWithFileOperation"), definitive, Taken}, // as the reference has it for writes
		{answer(http.StatusConflict, "LeaseNotPresentWithLeaseOperation"), definitive, Taken},
		{answer(http.StatusPreconditionFailed, "LeaseNotPresentWithBlobOperation"), definitive, Taken},
		{answer(http.StatusPreconditionFailed, "LeaseNotPresentWithContainerOperation"), definitive, Taken},
		{answer(http.StatusPreconditionFailed, "LeaseNotPresentWithFileOperation"), definitive, Taken},
		{answer(http.StatusPreconditionFailed, "LeaseLost"), definitive, Taken},
		{errForeign, definitive, Taken},

		// The resource is gone.
		{answer(http.StatusNotFound, "BlobNotFound"), definitive, Deleted},
		{answer(http.StatusNotFound, "ContainerNotFound"), definitive, Deleted},
		{answer(http.StatusNotFound, "ShareNotFound"), definitive, Deleted},
		{answer(http.StatusNotFound, "ResourceNotFound"), definitive, Deleted},

		// These say nothing about the lease.
		{nil, unclear, 0},
		{answer(http.StatusNotFound, ""), unclear, 0}, // an intermediary's
		{answer(http.StatusServiceUnavailable, "ServerBusy"), unclear, 0},
		{answer(http.StatusInternalServerError, "OperationTimedOut"), unclear, 0},
		{answer(http.StatusForbidden, "AuthenticationFailed"), unclear, 0}, // while keys are rotated
		{answer(http.StatusForbidden, "AuthorizationPermissionMismatch"), unclear, 0},
		{answer(http.StatusUnauthorized, "NoAuthenticationInformation"), unclear, 0},
		{answer(http.StatusTooManyRequests, ""), unclear, 0},
		{answer(http.StatusBadGateway, ""), unclear, 0},
		{answer(http.StatusBadRequest, "InvalidHeaderValue"), unclear, 0},
		{answer(http.StatusPreconditionFailed, "ConditionNotMet"), unclear, 0},
		{answer(http.StatusConflict, "LeaseAlreadyPresent"), unclear, 0}, // to an acquisition; a holder does not acquire
		{context.DeadlineExceeded, unclear, 0},
		{context.Canceled, unclear, 0},
		{errors.New("dial tcp: lookup acct.blob.core.windows.net: no such host"), unclear, 0},
		{errSlow, unclear, 0},
		{&unhealthyError{errors.New("disk full")}, unclear, 0},
	} {
		if v, reason := judge(tt.err); v != tt.v || reason != tt.reason {
			t.Errorf("judge(%v) = %v, %v; want %v, %v", tt.err, v, reason, tt.v, tt.reason)
		}
	}
}
