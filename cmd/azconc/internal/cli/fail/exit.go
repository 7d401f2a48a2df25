package fail

import (
	"context"
	"errors"

	"github.com/Azure/azure-sdk-for-go/sdk/azidentity"

	"github.com/azconc/azconc/optimistic"
	"github.com/azconc/azconc/optimistic/blobs"
	"github.com/azconc/azconc/pessimistic"
	"github.com/azconc/azconc/pessimistic/files"
	"github.com/azconc/azconc/pkg/azerr"
	"github.com/azconc/azconc/pkg/fence"
)

const (
	ExitOK           = 0
	ExitFailed       = 1
	ExitUsage        = 2
	ExitNotFound     = 3
	ExitConflict     = 4
	ExitUnknown      = 5
	ExitHeld         = 6
	exitExists       = 7
	ExitFilter       = 8
	ExitLost         = 9
	ExitUnauthorised = 77
	ExitTimeout      = 124
	ExitInterrupted  = 130
)

// Verdict is the meaning of an error: its exit code and its outcome in JSON.
type Verdict struct {
	Code    int
	Outcome string
}

// Judge is the only place that turns errors into exit codes. An unknown outcome comes first: whatever ended the command,
// the user has to know that a write may have been applied.
func Judge(err error) Verdict {
	if err == nil {
		return Verdict{Code: ExitOK, Outcome: "ok"}
	}
	if _, ok := errors.AsType[*UsageError](err); ok {
		return Verdict{Code: ExitUsage, Outcome: "usage"}
	}
	if errors.Is(err, optimistic.ErrOutcomeUnknown) || errors.Is(err, pessimistic.ErrOutcomeUnknown) {
		return Verdict{Code: ExitUnknown, Outcome: "unknown"}
	}
	if v, ok := errors.AsType[exitStatus](err); ok {
		return v.Verdict()
	}
	if s, ok := errors.AsType[*SignalError](err); ok {
		return Verdict{Code: s.exitCode(), Outcome: "interrupted"}
	}
	if _, ok := errors.AsType[*TimeoutError](err); ok {
		return Verdict{Code: ExitTimeout, Outcome: "timed_out"}
	}
	_, content := errors.AsType[*pessimistic.ContentError](err)
	switch {
	case errors.Is(err, files.ErrTorn): // before its cause, such as a lost lease: a torn file matters more
		return Verdict{Code: ExitFailed, Outcome: "torn"}
	case errors.Is(err, optimistic.ErrExists):
		return Verdict{Code: exitExists, Outcome: "exists"}
	case errors.Is(err, optimistic.ErrNotFound), errors.Is(err, pessimistic.ErrNotFound):
		return Verdict{Code: ExitNotFound, Outcome: "not_found"}
	case errors.Is(err, pessimistic.ErrHeld):
		return Verdict{Code: ExitHeld, Outcome: "held"}
	case errors.Is(err, pessimistic.ErrLost):
		return Verdict{Code: ExitLost, Outcome: "lost"}
	case errors.Is(err, blobs.ErrNotModified):
		return Verdict{Code: ExitConflict, Outcome: "not_modified"}
	case content:
		return Verdict{Code: ExitConflict, Outcome: "has_content"}
	case errors.Is(err, files.ErrUndeleted):
		return Verdict{Code: ExitConflict, Outcome: "undeleted"}
	case errors.Is(err, optimistic.ErrConflict), errors.Is(err, pessimistic.ErrConflict), errors.Is(err, fence.ErrFenced):
		return Verdict{Code: ExitConflict, Outcome: "conflict"}
	}
	if _, ok := errors.AsType[*azidentity.AuthenticationFailedError](err); ok {
		return Verdict{Code: ExitUnauthorised, Outcome: "unauthorised"}
	}
	switch out := azerr.Classify(err); out.Kind {
	case azerr.Conflict:
		switch out.Reason {
		case azerr.Exists:
			return Verdict{Code: exitExists, Outcome: "exists"}
		case azerr.NotModified:
			return Verdict{Code: ExitConflict, Outcome: "not_modified"}
		}
		return Verdict{Code: ExitConflict, Outcome: "conflict"}
	case azerr.Held:
		return Verdict{Code: ExitHeld, Outcome: "held"}
	case azerr.Lost:
		return Verdict{Code: ExitLost, Outcome: "lost"}
	case azerr.NotFound:
		return Verdict{Code: ExitNotFound, Outcome: "not_found"}
	case azerr.Unauthorised:
		return Verdict{Code: ExitUnauthorised, Outcome: "unauthorised"}
	}
	return Verdict{Code: ExitFailed, Outcome: "failed"}
}

// exitStatus is implemented by the errors of the command line itself, such as a failed filter or a child's status.
type exitStatus interface {
	error
	Verdict() Verdict
}

// Ended puts the cause of ctx in front of an error that only says that ctx has ended.
func Ended(ctx context.Context, err error) error {
	cause := context.Cause(ctx)
	if err == nil || cause == nil || errors.Is(err, cause) {
		return err
	}
	if errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded) {
		return &endedError{cause: cause, err: err}
	}
	return err
}

type endedError struct{ cause, err error }

func (e *endedError) Error() string   { return e.cause.Error() }
func (e *endedError) Unwrap() []error { return []error{e.cause, e.err} }
