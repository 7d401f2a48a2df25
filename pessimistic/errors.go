package pessimistic

import (
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/azconc/azconc/pkg/azerr"
	"github.com/azconc/azconc/pkg/fence"
)

var (
	// ErrHeld says that somebody else holds it. The error in the chain is a *HeldError.
	ErrHeld = errors.New("held by another")

	// ErrLost says that a lease is not ours any more, or that it cannot be relied upon. The error in the chain is a
	// *LostError; it is also the cause of the end of Lease.Context.
	ErrLost = errors.New("lease lost")

	// ErrReleased says that the holder has given the lease back. It is the cause of the end of Lease.Context after
	// Release.
	ErrReleased = errors.New("lease released")

	// ErrNotFound says that what was to be leased does not exist, or the container of a Locker.
	ErrNotFound = errors.New("not found")

	// ErrUnknown says that a request was sent, its answer was lost, and nothing shows whether it was carried out. The
	// error in the chain is an *UnknownError.
	ErrUnknown = errors.New("outcome unknown")

	// ErrChanged says that the resource is at another version than the caller named.
	ErrChanged = errors.New("changed by another")

	// ErrUndeleted says that a file that was marked for deletion is there all the same: an SMB client has taken the mark
	// back, or the file was made anew meanwhile.
	ErrUndeleted = errors.New("not deleted: the mark for deletion was taken back, or the file was made anew")

	// ErrTorn says that a file's content is written in part. The error in the chain is a *TornError.
	ErrTorn = errors.New("partly written")

	// ErrContent says that the blob of a lock's name has content, so that it is not a lock. The error in the chain is a
	// *ContentError.
	ErrContent = errors.New("the blob has content")

	// ErrFenced says that a later holder keeps this one from writing. The error in the chain is a *fence.Error.
	ErrFenced = fence.ErrFenced
)

// HeldError tells a person who holds it. What is not known is empty.
type HeldError struct {
	Resource string
	Holder   string        // as the holder called itself
	Fence    fence.Token   // the holder's
	Since    time.Time     // when the holder got it, by the service's clock
	State    State         // StateLeased or StateBreaking
	Local    bool          // the holder is in this process, under the same Locker
	Waited   time.Duration // how long we have waited
	Err      error         // the service's answer; nil when we did not have to ask
}

func (e *HeldError) Error() string {
	var b strings.Builder
	b.WriteString(e.Resource + ": held by ")
	switch {
	case e.Holder != "":
		b.WriteString(e.Holder)
	case azerr.Classify(e.Err).Reason == azerr.OpenHandle:
		b.WriteString("an SMB client, which has it open")
	case azerr.Classify(e.Err).Reason == azerr.DeletePending:
		b.WriteString("an SMB client, which has marked it for deletion")
	default:
		b.WriteString("another")
	}
	if e.Local {
		b.WriteString(" in this process")
	}
	if !e.Since.IsZero() {
		b.WriteString(" since " + e.Since.UTC().Format(time.RFC3339))
	}
	if e.State == StateBreaking {
		b.WriteString(", and being broken")
	}
	if e.Waited > 0 {
		fmt.Fprintf(&b, ", after waiting for %v", e.Waited.Round(time.Millisecond))
	}
	return b.String()
}

// Unwrap returns the sentinel and the service's answer.
func (e *HeldError) Unwrap() []error { return chain(ErrHeld, e.Err) }

// ContentError says that a lock was asked for by the name of a blob that holds data.
type ContentError struct {
	Resource string
	Size     int64 // of the content, in bytes
}

func (e *ContentError) Error() string {
	return fmt.Sprintf("%s: the blob has %d bytes of content: a lock needs a blob of its own, so give it another name, or allow content", e.Resource, e.Size)
}

// Unwrap returns the sentinel.
func (e *ContentError) Unwrap() error { return ErrContent }

// Reason is why a lease was lost.
type Reason uint8

// The reasons.
const (
	// Stopped: no renewal has succeeded in two thirds of the duration. The work must stop now, so that it has stopped
	// when the lease runs out; the lease itself may still be held, and may still be renewed.
	Stopped Reason = iota + 1
	// Expired: no renewal has succeeded in the whole duration. Others may have the lease.
	Expired
	// Taken: the service does not know our lease any more: it expired and somebody else acquired it or changed the
	// resource, or somebody who knew its id released or changed it.
	Taken
	// Broken: somebody broke the lease.
	Broken
	// Deleted: the blob or container is gone.
	Deleted
	// Unhealthy: Stopped, because the health check failed and the lease was not renewed on purpose.
	Unhealthy
)

var reasonNames = [...]string{"", "stopped", "expired", "taken", "broken", "deleted", "unhealthy"}

func (r Reason) String() string {
	if int(r) < len(reasonNames) {
		return reasonNames[r]
	}
	return "invalid"
}

// LostError tells what became of a lease.
type LostError struct {
	Resource string
	Reason   Reason
	Duration time.Duration // of the lease
	Renewed  time.Time     // when the last request that acquired or renewed it was sent, by our clock
	Elapsed  time.Duration // from then until the loss was noticed
	Jump     time.Duration // part of Elapsed in which this machine stood still, or its clock was set; 0 if less than a second
	Err      error         // the service's answer, or that of the last renewal that failed; nil when there is none
}

func (e *LostError) Error() string {
	var b strings.Builder
	b.WriteString(e.Resource + ": lease ")
	switch e.Reason {
	case Stopped:
		fmt.Fprintf(&b, "in doubt: not renewed for %v of %v", e.Elapsed.Round(time.Millisecond), e.Duration)
	case Unhealthy:
		fmt.Fprintf(&b, "given up: unhealthy, hence not renewed for %v of %v", e.Elapsed.Round(time.Millisecond), e.Duration)
	case Expired:
		fmt.Fprintf(&b, "expired: not renewed for %v of %v", e.Elapsed.Round(time.Millisecond), e.Duration)
	case Taken:
		b.WriteString("lost: it is not ours any more")
	case Broken:
		b.WriteString("broken by another")
	case Deleted:
		b.WriteString("lost: what was leased is deleted")
	default:
		b.WriteString("lost")
	}
	if e.Jump > 0 {
		fmt.Fprintf(&b, ", of which this machine stood still for %v", e.Jump.Round(time.Second))
	}
	if e.Err != nil {
		b.WriteString(": " + azerr.Summary(e.Err))
	}
	return b.String()
}

// Unwrap returns the sentinel and the service's answer.
func (e *LostError) Unwrap() []error { return chain(ErrLost, e.Err) }

// UnknownError is an unknown outcome in full.
type UnknownError struct {
	Op       string // "release", "change", "stamp", "write", …
	Resource string
	Why      string // what it means for the caller
	Err      error  // the last answer, or why there was none
}

func (e *UnknownError) Error() string {
	text := e.Op + " " + e.Resource + ": outcome unknown"
	if e.Why != "" {
		text += ": " + e.Why
	}
	if e.Err != nil {
		text += ": " + azerr.Summary(e.Err)
	}
	return text
}

// Unwrap returns the sentinel and the last answer.
func (e *UnknownError) Unwrap() []error { return chain(ErrUnknown, e.Err) }

// OpError is any other failure of a request, with a text that is safe to show.
type OpError struct {
	Op       string
	Resource string
	Err      error
}

func (e *OpError) Error() string { return e.Op + " " + e.Resource + ": " + azerr.Summary(e.Err) }

// Unwrap returns the cause, and the sentinel that stands for it where there is one.
func (e *OpError) Unwrap() []error {
	switch o := azerr.Classify(e.Err); {
	case o.Kind == azerr.NotFound:
		return chain(ErrNotFound, e.Err)
	case o.Kind == azerr.Conflict && o.Reason == azerr.Changed:
		return chain(ErrChanged, e.Err)
	}
	return []error{e.Err}
}

func chain(sentinel, cause error) []error {
	if cause == nil {
		return []error{sentinel}
	}
	return []error{sentinel, cause}
}

// opError names what failed, but leaves errors alone that do so themselves.
func opError(op, resource string, err error) error {
	if typed(err) {
		return err
	}
	return &OpError{Op: op, Resource: resource, Err: err}
}

// typed tells whether an error says itself what it is about.
func typed(err error) bool {
	for _, named := range []error{ErrHeld, ErrLost, ErrReleased, ErrUnknown, ErrFenced, ErrUndeleted, ErrTorn, ErrContent} {
		if errors.Is(err, named) {
			return true
		}
	}
	return false
}
