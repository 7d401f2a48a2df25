package lock

import (
	"context"
	"errors"

	"github.com/azconc/azconc/cmd/azconc/internal/cli/fail"
	"github.com/azconc/azconc/cmd/azconc/internal/proc"
	"github.com/azconc/azconc/pessimistic"
)

// ExitLost is the exit code of the run verbs for what was lost while the command ran.
const ExitLost = 76

// LostRunning reports that the command was stopped because its lease was lost.
type LostRunning struct{ Err error }

func (e *LostRunning) Error() string { return "the command was stopped: " + e.Err.Error() }
func (e *LostRunning) Unwrap() error { return e.Err }
func (e *LostRunning) Verdict() fail.Verdict {
	return fail.Verdict{Code: ExitLost, Outcome: "lost"}
}

// CommandLeft reports that a process of the command could not be stopped, so that the lease is not released. It expires
// unless it is infinite.
type CommandLeft struct {
	Lost *pessimistic.LostError // may be nil
	Err  error                  // why it is unknown whether one is left; may be nil
}

func (e *CommandLeft) Error() string {
	text := "a process of the command is still running and cannot be stopped"
	if e.Err != nil {
		text = "a process of the command may still be running: " + e.Err.Error()
	}
	if e.Lost != nil { // another holder may be there already
		return text + "; the lock is lost: " + e.Lost.Error()
	}
	return text + "; the lease is not released; it expires, unless it is infinite"
}

func (e *CommandLeft) Verdict() fail.Verdict {
	return fail.Verdict{Code: ExitLost, Outcome: "lost"}
}

// NotStarted returns the error of a command that could not be started.
func NotStarted(err error) error {
	if e, ok := errors.AsType[*proc.StartError](err); ok {
		return &fail.CommandStatus{Code: e.Code, Text: e.Error()}
	}
	return err
}

// Ended returns the error of a command that has ended with s. If ctx was ended by a signal, the command has received it, and decides
// its own status. Any other end of ctx is azconc's.
func Ended(ctx context.Context, s proc.Status) error {
	switch {
	case ctx.Err() != nil && !fail.Signalled(ctx):
		return context.Cause(ctx)
	case s.Code == 0:
		return nil
	}
	text := ""
	if s.Signal != "" {
		text = "the command was ended by a signal: " + s.Signal
	}
	return &fail.CommandStatus{Code: s.Code, Text: text}
}
