package idempotent

import (
	"errors"
	"fmt"
	"time"
)

var (
	// ErrOwnershipLost is the cause of the end of a handler's context when its message may be received by another: it
	// could not be kept hidden, or somebody has received, deleted or cleared it.
	ErrOwnershipLost = errors.New("the message is not ours any more")

	// ErrAlreadyApplied says that the effect of a message has been applied before. Inbox.Apply returns it; a handler that
	// passes it on has its message deleted, as after success.
	ErrAlreadyApplied = errors.New("the message's effect has been applied already")

	// ErrStopping is the cause of the end of a handler's context when a Consumer is told to stop and has waited for
	// SoftStop.
	ErrStopping = errors.New("the consumer is stopping")
)

// verdict is what a handler wants to become of its message.
type verdict uint8

const (
	retryLater verdict = iota // any other error
	done
	poison
	drop
	postpone
)

// steered is an error that says what shall become of the message.
type steered struct {
	what  verdict
	after time.Duration
	err   error
}

func (e *steered) Error() string {
	if e.err == nil {
		return fmt.Sprintf("postponed for %v", e.after)
	}
	return e.err.Error()
}

func (e *steered) Unwrap() error { return e.err }

// RetryAfter is an error to be returned by a handler: the message is delivered again after d, at once if that is 0, and the
// attempt counts. Without it the pause comes from ConsumerOptions.Backoff. d is rounded up to whole seconds; negative is 0.
func RetryAfter(err error, d time.Duration) error { return &steered{retryLater, max(d, 0), err} }

// Poison is an error to be returned by a handler for which trying again is no use: the message goes to the poison queue
// at once.
func Poison(err error) error { return &steered{poison, 0, err} }

// Drop is an error to be returned by a handler whose message shall be deleted although it was not handled.
func Drop(err error) error { return &steered{drop, 0, err} }

// Postpone is to be returned by a handler that cannot begin yet: the message is delivered again after d, and neither the attempt
// nor the delivery counts, however often it happens. Of a message that is no envelope, without Markers, the Consumer remembers
// that only as long as it runs.
func Postpone(d time.Duration) error { return &steered{postpone, max(d, 0), nil} }

// judge reads a handler's error. A negative pause leaves it to ConsumerOptions.Backoff.
func judge(err error) (verdict, time.Duration) {
	if err == nil || errors.Is(err, ErrAlreadyApplied) {
		return done, 0
	}
	if s, ok := errors.AsType[*steered](err); ok {
		return s.what, s.after
	}
	return retryLater, -1
}
