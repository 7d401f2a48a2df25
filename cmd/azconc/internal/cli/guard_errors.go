package cli

import (
	"cmp"
	"errors"

	"github.com/azconc/azconc/cmd/azconc/internal/proc"
	"github.com/azconc/azconc/pessimistic"
)

// notAcquired reports that another holder had the lease for the whole time.
type notAcquired struct {
	err  error
	code int
}

func (e *notAcquired) Error() string    { return e.err.Error() }
func (e *notAcquired) Unwrap() error    { return e.err }
func (e *notAcquired) verdict() verdict { return verdict{e.code, "not_acquired"} }

// lostRunning is that the command had to be stopped.
type lostRunning struct {
	err error
	why string // in place of err's text, if not ""
}

func (e *lostRunning) Error() string {
	return "the command was stopped: " + cmp.Or(e.why, e.err.Error())
}
func (e *lostRunning) Unwrap() error    { return e.err }
func (e *lostRunning) verdict() verdict { return verdict{exitLostRunning, "lost"} }

// commandLeft is that something of the command could not be ended, so that nothing is released. It ends by itself, if it
// does not last for ever.
type commandLeft struct{ lost *pessimistic.LostError }

func (e *commandLeft) Error() string {
	text := "a process of the command is still running and cannot be stopped; the lease is kept until it expires"
	if e.lost != nil {
		text += ": " + e.lost.Error()
	}
	return text
}

func (e *commandLeft) verdict() verdict { return verdict{exitLostRunning, "lost"} }

func notStarted(err error) error {
	if e, ok := errors.AsType[*proc.StartError](err); ok {
		return &commandStatus{code: e.Code, text: e.Error()}
	}
	return err
}
