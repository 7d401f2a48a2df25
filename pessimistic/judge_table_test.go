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
		reason Reason
	}{
		// The lease was broken.
		{answer(http.StatusConflict, "LeaseIsBrokenAndCannotBeRenewed"), Broken},
		{answer(http.StatusConflict, "LeaseIsBreakingAndCannotBeChanged"), Broken},
		{answer(http.StatusConflict, "LeaseAlreadyBroken"), Broken},

		// Another lease is there, or none.
		{answer(http.StatusConflict, "LeaseIdMismatchWithLeaseOperation"), Taken},
		{answer(http.StatusPreconditionFailed, "LeaseIdMismatchWithBlobOperation"), Taken},
		{answer(http.StatusPreconditionFailed, "LeaseIdMismatchWithContainerOperation"), Taken},
		{answer(http.StatusPreconditionFailed, "LeaseIdMismatchWithFileOperation"), Taken},
		{answer(http.StatusConflict, "LeaseIdMismatchWithFileOperation"), Taken}, // as the reference has it for writes
		{answer(http.StatusConflict, "LeaseNotPresentWithLeaseOperation"), Taken},
		{answer(http.StatusPreconditionFailed, "LeaseNotPresentWithBlobOperation"), Taken},
		{answer(http.StatusPreconditionFailed, "LeaseNotPresentWithContainerOperation"), Taken},
		{answer(http.StatusPreconditionFailed, "LeaseNotPresentWithFileOperation"), Taken},
		{answer(http.StatusPreconditionFailed, "LeaseLost"), Taken},
		{errForeign, Taken},

		// The resource is gone.
		{answer(http.StatusNotFound, "BlobNotFound"), Deleted},
		{answer(http.StatusNotFound, "ContainerNotFound"), Deleted},
		{answer(http.StatusNotFound, "ShareNotFound"), Deleted},
		{answer(http.StatusNotFound, "ResourceNotFound"), Deleted},

		// These say nothing about the lease.
		{nil, 0},
		{answer(http.StatusNotFound, ""), 0}, // an intermediary's
		{answer(http.StatusServiceUnavailable, "ServerBusy"), 0},
		{answer(http.StatusInternalServerError, "OperationTimedOut"), 0},
		{answer(http.StatusForbidden, "AuthenticationFailed"), 0}, // while keys are rotated
		{answer(http.StatusForbidden, "AuthorizationPermissionMismatch"), 0},
		{answer(http.StatusUnauthorized, "NoAuthenticationInformation"), 0},
		{answer(http.StatusTooManyRequests, ""), 0},
		{answer(http.StatusBadGateway, ""), 0},
		{answer(http.StatusBadRequest, "InvalidHeaderValue"), 0},
		{answer(http.StatusPreconditionFailed, "ConditionNotMet"), 0},
		{answer(http.StatusConflict, "LeaseAlreadyPresent"), 0}, // to an acquisition; a holder does not acquire
		{context.DeadlineExceeded, 0},
		{context.Canceled, 0},
		{errors.New("dial tcp: lookup acct.blob.core.windows.net: no such host"), 0},
		{errSlow, 0},
		{&unhealthyError{errors.New("disk full")}, 0},
	} {
		if reason := judge(tt.err); reason != tt.reason {
			t.Errorf("judge(%v) = %v, want %v", tt.err, reason, tt.reason)
		}
	}
}
