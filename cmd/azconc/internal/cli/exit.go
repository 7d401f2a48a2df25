package cli

import (
	"context"
	"errors"

	"github.com/Azure/azure-sdk-for-go/sdk/azidentity"

	"github.com/azconc/azconc/optimistic"
	"github.com/azconc/azconc/pessimistic"
	"github.com/azconc/azconc/pkg/azerr"
	"github.com/azconc/azconc/pkg/fence"
)

const (
	exitOK           = 0
	exitFailed       = 1
	exitUsage        = 2
	exitNotFound     = 3
	exitConflict     = 4
	exitUnknown      = 5
	exitHeld         = 6
	exitExists       = 7
	exitFilter       = 8
	exitLost         = 9
	exitUnauthorised = 77
	exitTimeout      = 124
	exitInterrupted  = 130
)

// verdict is the meaning of an error: its exit code and its outcome in JSON.
type verdict struct {
	code    int
	outcome string
}

// judge is the only place that turns errors into exit codes. An unknown outcome comes first: whatever ended the command,
// the caller has to know that a write may have happened.
func judge(err error) verdict {
	if err == nil {
		return verdict{exitOK, "ok"}
	}
	if _, ok := errors.AsType[*usageError](err); ok {
		return verdict{exitUsage, "usage"}
	}
	if errors.Is(err, optimistic.ErrOutcomeUnknown) || errors.Is(err, pessimistic.ErrUnknown) {
		return verdict{exitUnknown, "unknown"}
	}
	if v, ok := errors.AsType[exitStatus](err); ok {
		return v.verdict()
	}
	if s, ok := errors.AsType[*SignalError](err); ok {
		return verdict{s.exitCode(), "interrupted"}
	}
	if _, ok := errors.AsType[*timeoutError](err); ok {
		return verdict{exitTimeout, "timed_out"}
	}
	switch {
	case errors.Is(err, pessimistic.ErrTorn): // before its cause, such as a lost lease: a torn file matters more
		return verdict{exitFailed, "torn"}
	case errors.Is(err, optimistic.ErrExists):
		return verdict{exitExists, "exists"}
	case errors.Is(err, optimistic.ErrNotFound), errors.Is(err, pessimistic.ErrNotFound):
		return verdict{exitNotFound, "not_found"}
	case errors.Is(err, pessimistic.ErrHeld):
		return verdict{exitHeld, "held"}
	case errors.Is(err, pessimistic.ErrLost):
		return verdict{exitLost, "lost"}
	case errors.Is(err, optimistic.ErrNotModified):
		return verdict{exitConflict, "not_modified"}
	case errors.Is(err, pessimistic.ErrContent):
		return verdict{exitConflict, "has_content"}
	case errors.Is(err, pessimistic.ErrUndeleted):
		return verdict{exitConflict, "undeleted"}
	case errors.Is(err, optimistic.ErrConflict), errors.Is(err, pessimistic.ErrChanged), errors.Is(err, fence.ErrFenced):
		return verdict{exitConflict, "conflict"}
	}
	if _, ok := errors.AsType[*azidentity.AuthenticationFailedError](err); ok {
		return verdict{exitUnauthorised, "unauthorised"}
	}
	switch out := azerr.Classify(err); out.Kind {
	case azerr.Conflict:
		switch out.Reason {
		case azerr.Exists:
			return verdict{exitExists, "exists"}
		case azerr.NotModified:
			return verdict{exitConflict, "not_modified"}
		}
		return verdict{exitConflict, "conflict"}
	case azerr.Held:
		return verdict{exitHeld, "held"}
	case azerr.Lost:
		return verdict{exitLost, "lost"}
	case azerr.NotFound:
		return verdict{exitNotFound, "not_found"}
	case azerr.Unauthorised:
		return verdict{exitUnauthorised, "unauthorised"}
	}
	return verdict{exitFailed, "failed"}
}

// exitStatus is implemented by errors that are the command line's own, such as a filter that failed or a child's status.
type exitStatus interface {
	error
	verdict() verdict
}

// ended puts the reason for which ctx ended in front of an error that only says that it did.
func ended(ctx context.Context, err error) error {
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
