package lock

import (
	"cmp"
	"errors"

	"github.com/azconc/azconc/cmd/azconc/internal/cli/fail"
	"github.com/azconc/azconc/cmd/azconc/internal/proc"
	"github.com/azconc/azconc/pessimistic"
)

// NotAcquired reports that another holder had the lease for the whole time.
type NotAcquired struct {
	Err  error
	Code int
}

func (e *NotAcquired) Error() string { return e.Err.Error() }
func (e *NotAcquired) Unwrap() error { return e.Err }
func (e *NotAcquired) Verdict() fail.Verdict {
	return fail.Verdict{Code: e.Code, Outcome: "not_acquired"}
}

// LostRunning reports that the command was stopped because its lease was lost.
type LostRunning struct {
	Err error
	Why string // in place of err's text, if not ""
}

func (e *LostRunning) Error() string {
	return "the command was stopped: " + cmp.Or(e.Why, e.Err.Error())
}
func (e *LostRunning) Unwrap() error { return e.Err }
func (e *LostRunning) Verdict() fail.Verdict {
	return fail.Verdict{Code: exitLostRunning, Outcome: "lost"}
}

// CommandLeft reports that a process of the command could not be stopped, so that the lease is not released. It expires
// unless it is infinite.
type CommandLeft struct {
	Lost *pessimistic.LostError // may be nil
	Err  error                  // why it is unknown whether one is left; may be nil
}

func (e *CommandLeft) Error() string {
	text := "a process of the command is still running and cannot be stopped; the lease is kept until it expires"
	if e.Err != nil {
		text = "a process of the command may still be running; the lease is kept until it expires: " + e.Err.Error()
	}
	if e.Lost != nil {
		text += ": " + e.Lost.Error()
	}
	return text
}

func (e *CommandLeft) Verdict() fail.Verdict {
	return fail.Verdict{Code: exitLostRunning, Outcome: "lost"}
}

func NotStarted(err error) error {
	if e, ok := errors.AsType[*proc.StartError](err); ok {
		return &fail.CommandStatus{Code: e.Code, Text: e.Error()}
	}
	return err
}

// exitLostRunning is the exit code of the run verbs for what was lost while the command ran.
const exitLostRunning = 76
