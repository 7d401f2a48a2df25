package cli_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"syscall"
	"testing"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore"

	"github.com/azconc/azconc/cmd/azconc/internal/cli/fail"
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
	timeout := &fail.TimeoutError{}
	for _, c := range []struct {
		name    string
		err     error
		code    int
		outcome string
	}{
		{"none", nil, 0, "ok"},
		{"any", errors.New("x"), 1, "failed"},
		{"usage", fmt.Errorf("x: %w", fail.WithHint(fail.Usagef("x"), "y")), 2, "usage"},
		{"not found", &optimistic.NotFoundError{}, 3, "not_found"},
		{"service: no blob", answer(404, "BlobNotFound"), 3, "not_found"},
		{"service: no container", answer(404, "ContainerNotFound"), 3, "not_found"},
		{"conflict", fail.Tally(&optimistic.ConflictError{Reason: azerr.Changed}, optimistic.Result{}), 4, "conflict"},
		{"service: condition", answer(412, "ConditionNotMet"), 4, "conflict"},
		{"not modified", answer(304, "ConditionNotMet"), 4, "not_modified"},
		{"unknown", &optimistic.UnknownError{}, 5, "unknown"},
		{"unknown because the time ran out", &optimistic.UnknownError{Err: timeout}, 5, "unknown"},
		{"held", answer(409, "LeaseAlreadyPresent"), 6, "held"},
		{"service: no lease id", answer(412, "LeaseIdMissing"), 6, "held"},
		{"exists", &optimistic.ConflictError{Reason: azerr.Exists}, 7, "exists"},
		{"service: exists", answer(409, "ContainerAlreadyExists"), 7, "exists"},
		{"filter", fail.Tally(&fail.FilterError{What: "x"}, optimistic.Result{}), 8, "filter_failed"},
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
		{"interrupted", &fail.SignalError{Signal: syscall.SIGINT}, 130, "interrupted"},
		{"terminated", &fail.SignalError{Signal: syscall.SIGTERM}, 143, "interrupted"},
	} {
		if got := fail.Judge(c.err); got != (fail.Verdict{Code: c.code, Outcome: c.outcome}) {
			t.Errorf("%s: %+v, want %d %s", c.name, got, c.code, c.outcome)
		}
	}
}

func TestTheReasonWhyAContextEndedComesFirst(t *testing.T) {
	ctx, cancel := context.WithCancelCause(context.Background())
	cancel(&fail.SignalError{Signal: syscall.SIGINT})
	if err := fail.Ended(ctx, fmt.Errorf("read: %w", context.Canceled)); fail.Judge(err).Code != 130 || err.Error() != "interrupted" {
		t.Errorf("ended = %v", err)
	}
	other := errors.New("something else")
	if err := fail.Ended(ctx, other); err != other {
		t.Errorf("ended = %v, want the error as it is: it is not about the context", err)
	}
}

// noToken is an error that the SDK marks as one of credentials.
type noToken struct{}

func (noToken) Error() string { return "the tenant is unknown" }
func (noToken) NonRetriable() {}

// TestASignInThatFailsIsExplainedOnce: the library's error has an explanation of its own.
func TestASignInThatFailsIsExplainedOnce(t *testing.T) {
	err := azerr.Op("read", "jobs/a", noToken{})
	v := fail.Judge(err)
	message, hint := fail.Message(err, v, "blob get", "jobs/a"), fail.Hint(err, v, "blob get", "jobs/a")
	if v.Code != fail.ExitUnauthorised || message != "not authorised: sign-in failed: read jobs/a: the tenant is unknown" ||
		hint != "sign in with az login, or give a key or a SAS: see azconc help environment" {
		t.Errorf("exit %d, %q, hint %q", v.Code, message, hint)
	}
}

// TestAnErrorKeepsItsSemicolons: the way out is cut from the message alone, where the hint says it.
func TestAnErrorKeepsItsSemicolons(t *testing.T) {
	err := errors.New("first; second")
	if got := fail.Message(err, fail.Judge(err), "blob copy", "jobs/a"); got != "first; second" {
		t.Errorf("message = %q", got)
	}
}
