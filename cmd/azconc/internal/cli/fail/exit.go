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
	if _, content := errors.AsType[*pessimistic.ContentError](err); content {
		return Verdict{Code: ExitConflict, Outcome: "has_content"}
	}
	for _, v := range verdicts {
		if errors.Is(err, v.of) {
			return v.Verdict
		}
	}
	if _, ok := errors.AsType[*azidentity.AuthenticationFailedError](err); ok {
		return kinds[azerr.Unauthorised]
	}
	answer := azerr.Classify(err)
	v, known := kinds[answer.Kind]
	switch {
	case !known:
		return Verdict{Code: ExitFailed, Outcome: "failed"}
	case answer.Kind == azerr.Conflict && answer.Reason == azerr.Exists:
		return Verdict{Code: exitExists, Outcome: "exists"}
	case answer.Kind == azerr.Conflict && answer.Reason == azerr.NotModified:
		return Verdict{Code: ExitConflict, Outcome: "not_modified"}
	}
	return v
}

// verdicts are those of the libraries' errors. The first that applies counts.
var verdicts = []struct {
	of error
	Verdict
}{
	{files.ErrTorn, Verdict{ExitFailed, "torn"}}, // before its cause, such as a lost lease: a torn file matters more
	{optimistic.ErrExists, Verdict{exitExists, "exists"}},
	{optimistic.ErrNotFound, kinds[azerr.NotFound]},
	{pessimistic.ErrNotFound, kinds[azerr.NotFound]},
	{pessimistic.ErrHeld, kinds[azerr.Held]},
	{pessimistic.ErrLost, kinds[azerr.Lost]},
	{blobs.ErrNotModified, Verdict{ExitConflict, "not_modified"}},
	{files.ErrUndeleted, Verdict{ExitConflict, "undeleted"}},
	{optimistic.ErrConflict, kinds[azerr.Conflict]},
	{pessimistic.ErrConflict, kinds[azerr.Conflict]},
	{fence.ErrFenced, kinds[azerr.Conflict]},
}

// kinds are the verdicts of the service's responses.
var kinds = map[azerr.Kind]Verdict{
	azerr.Conflict:     {ExitConflict, "conflict"},
	azerr.Held:         {ExitHeld, "held"},
	azerr.Lost:         {ExitLost, "lost"},
	azerr.NotFound:     {ExitNotFound, "not_found"},
	azerr.Unauthorised: {ExitUnauthorised, "unauthorised"},
}

// exitStatus is implemented by the errors of the command line itself, such as a failed filter or a child's status.
type exitStatus interface {
	error
	Verdict() Verdict
}

// Judged gives an error an exit code and an outcome of its own.
func Judged(code int, outcome string, err error) error {
	return &judged{err, Verdict{Code: code, Outcome: outcome}}
}

type judged struct {
	error
	verdict Verdict
}

func (e *judged) Unwrap() error    { return e.error }
func (e *judged) Verdict() Verdict { return e.verdict }

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
