package fail

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"syscall"
	"testing"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore"

	"github.com/azconc/azconc/optimistic"
	"github.com/azconc/azconc/pessimistic"
	"github.com/azconc/azconc/pessimistic/files"
	"github.com/azconc/azconc/pkg/azerr"
	"github.com/azconc/azconc/pkg/fence"
)

func answer(status int, code string) error {
	return &azcore.ResponseError{StatusCode: status, ErrorCode: code, RawResponse: &http.Response{StatusCode: status, Header: http.Header{}}}
}

func TestEveryErrorHasItsExitCode(t *testing.T) {
	timeout := &TimeoutError{}
	for _, c := range []struct {
		name    string
		err     error
		code    int
		outcome string
	}{
		{"none", nil, 0, "ok"},
		{"any", errors.New("x"), 1, "failed"},
		{"usage", fmt.Errorf("x: %w", WithHint(Usagef("x"), "y")), 2, "usage"},
		{"not found", &optimistic.NotFoundError{}, 3, "not_found"},
		{"service: no blob", answer(404, "BlobNotFound"), 3, "not_found"},
		{"service: no container", answer(404, "ContainerNotFound"), 3, "not_found"},
		{"conflict", Tally(&optimistic.ConflictError{Reason: azerr.Changed}, optimistic.Result{}), 4, "conflict"},
		{"service: condition", answer(412, "ConditionNotMet"), 4, "conflict"},
		{"not modified", answer(304, "ConditionNotMet"), 4, "not_modified"},
		{"unknown", &optimistic.UnknownError{}, 5, "unknown"},
		{"unknown because the time ran out", &optimistic.UnknownError{Err: timeout}, 5, "unknown"},
		{"held", answer(409, "LeaseAlreadyPresent"), 6, "held"},
		{"service: no lease id", answer(412, "LeaseIdMissing"), 6, "held"},
		{"exists", &optimistic.ConflictError{Reason: azerr.Exists}, 7, "exists"},
		{"service: exists", answer(409, "ContainerAlreadyExists"), 7, "exists"},
		{"filter", Tally(&FilterError{What: "x"}, optimistic.Result{}), 8, "filter_failed"},
		{"lease lost", answer(412, "LeaseLost"), 9, "lost"},
		{"a lock that another holds", &pessimistic.HeldError{}, 6, "held"},
		{"a lock that was lost", &pessimistic.LostError{}, 9, "lost"},
		{"a lock that is not there", &azerr.OpError{Err: answer(404, "BlobNotFound")}, 3, "not_found"},
		{"another acquisition", &azerr.OpError{Err: pessimistic.ErrConflict}, 4, "conflict"},
		{"an earlier holder", &fence.Error{}, 4, "conflict"},
		{"a break without an answer", &pessimistic.UnknownError{}, 5, "unknown"},
		{"a file that is open", &files.InUseError{Err: answer(409, "SharingViolation")}, 6, "held"},
		{"a file that is half written", &files.TornError{Err: &pessimistic.LostError{}}, 1, "torn"},
		{"a mark that was taken back", &azerr.OpError{Err: files.ErrUndeleted}, 4, "undeleted"},
		{"forbidden", answer(403, "AuthorizationPermissionMismatch"), 77, "unauthorised"},
		{"unauthenticated", answer(403, "AuthenticationFailed"), 77, "unauthorised"},
		{"timeout", timeout, 124, "timed_out"},
		{"timeout after conflicts", errors.Join(timeout, &optimistic.ConflictError{}), 124, "timed_out"},
		{"interrupted", &SignalError{Signal: syscall.SIGINT}, 130, "interrupted"},
		{"terminated", &SignalError{Signal: syscall.SIGTERM}, 143, "interrupted"},
	} {
		if got := Judge(c.err); got != (Verdict{Code: c.code, Outcome: c.outcome}) {
			t.Errorf("%s: %+v, want %d %s", c.name, got, c.code, c.outcome)
		}
	}
}

func TestTheReasonWhyAContextEndedComesFirst(t *testing.T) {
	ctx, cancel := context.WithCancelCause(context.Background())
	cancel(&SignalError{Signal: syscall.SIGINT})
	if err := Ended(ctx, fmt.Errorf("read: %w", context.Canceled)); Judge(err).Code != 130 || err.Error() != "interrupted" {
		t.Errorf("ended = %v", err)
	}
	other := errors.New("something else")
	if err := Ended(ctx, other); err != other {
		t.Errorf("ended = %v, want the error as it is: it is not about the context", err)
	}
}
