package idempotent

import (
	"errors"
	"fmt"
	"time"
)

var (
	// ErrOwnershipLost is the cause with which a handler's context ends when another consumer may receive the message:
	// it could not be kept hidden, or was received, deleted or cleared by another client.
	ErrOwnershipLost = errors.New("the message is no longer held by this consumer")

	// ErrAlreadyApplied reports that the effect of a message has been applied before. Inbox.Apply returns it; if a
	// handler returns it, the message is deleted, as after success.
	ErrAlreadyApplied = errors.New("the message's effect has been applied already")

	// ErrStopping is the cause with which a handler's context ends when a Consumer is stopping and SoftStop has passed.
	ErrStopping = errors.New("the consumer is stopping")
)

// verdict is what a handler wants to happen to its message.
type verdict uint8

const (
	retryLater verdict = iota // any other error
	done
	poison
	drop
	postpone
)

// steered is an error that carries a verdict.
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

// RetryAfter returns an error for a handler to return: the message is redelivered after d, at once if d is 0, and the
// attempt counts. For other errors the pause comes from ConsumerOptions.Backoff. d is rounded up to whole seconds; a
// negative d counts as 0.
func RetryAfter(err error, d time.Duration) error { return &steered{retryLater, max(d, 0), err} }

// Poison returns an error for a handler to return if retrying is pointless: the message goes to the poison queue at
// once.
func Poison(err error) error { return &steered{poison, 0, err} }

// Drop returns an error for a handler to return if the message is to be deleted although it was not handled.
func Drop(err error) error { return &steered{drop, 0, err} }

// Postpone returns an error for a handler that cannot begin yet: the message is redelivered after d, and neither the
// attempt nor the delivery counts, however often that happens. For a message that is not an envelope, without Markers,
// the Consumer remembers this only while it runs.
func Postpone(d time.Duration) error { return &steered{postpone, max(d, 0), nil} }

// judge interprets a handler's error. A negative pause stands for ConsumerOptions.Backoff.
func judge(err error) (verdict, time.Duration) {
	if err == nil || errors.Is(err, ErrAlreadyApplied) {
		return done, 0
	}
	if s, ok := errors.AsType[*steered](err); ok {
		return s.what, s.after
	}
	return retryLater, -1
}
