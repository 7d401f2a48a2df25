package pessimistic

import (
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/azconc/azconc/pkg/azerr"
	"github.com/azconc/azconc/pkg/fence"
	"github.com/azconc/azconc/pkg/lease"
)

var (
	// ErrHeld reports that another client holds the resource. The error in the chain is a *HeldError.
	ErrHeld = errors.New("held by another")

	// ErrLost reports that a lease is no longer this process's, or can no longer be relied upon. The error in the chain
	// is a *LostError, which is also the cause with which Lease.Context ends.
	ErrLost = errors.New("lease lost")

	// ErrReleased reports that the holder has released the lease. It is the cause with which Lease.Context ends after
	// Release.
	ErrReleased = errors.New("lease released")

	// ErrNotFound reports that the resource to lease, or a Locker's container, does not exist.
	ErrNotFound = azerr.ErrNotFound

	// ErrOutcomeUnknown reports that a request was sent, its response was lost, and nothing shows whether it was
	// applied. The error in the chain is an *UnknownError.
	ErrOutcomeUnknown = azerr.ErrOutcomeUnknown

	// ErrContent reports that a lock was requested under the name of a blob that holds data. The error in the chain is a
	// *ContentError.
	ErrContent = errors.New("the blob has content")

	// ErrConflict reports that the resource is at a version other than the one the caller named.
	ErrConflict = azerr.ErrConflict
)

// HeldError describes the current holder. Fields that are not known are zero.
type HeldError struct {
	Resource string
	Holder   string        // the name the holder gave itself
	Fence    fence.Token   // the holder's fence
	Since    time.Time     // when the holder acquired it, by the service's clock
	State    lease.State   // lease.Leased or lease.Breaking; free if the lock is left to others who came before
	Local    bool          // the holder is in this process, under the same Locker
	Waited   time.Duration // how long the call has waited
	Err      error         // the service's response; nil if no request was needed
}

func (e *HeldError) Error() string {
	var b strings.Builder
	b.WriteString(e.Resource + ": ")
	switch {
	case e.State != "" && e.State.Free():
		b.WriteString("free, but others came before")
	case e.Holder != "":
		b.WriteString("held by " + e.Holder)
	case azerr.Classify(e.Err).Reason == azerr.OpenHandle:
		b.WriteString("held by an SMB client, which has it open")
	case azerr.Classify(e.Err).Reason == azerr.DeletePending:
		b.WriteString("held by an SMB client, which has marked it for deletion")
	default:
		b.WriteString("held by another")
	}
	if e.Local {
		b.WriteString(" in this process")
	}
	if !e.Since.IsZero() {
		b.WriteString(" since " + e.Since.UTC().Format(time.RFC3339))
	}
	if e.State == lease.Breaking {
		b.WriteString(", lease being broken")
	}
	if e.Waited > 0 {
		fmt.Fprintf(&b, ", after waiting for %v", e.Waited.Round(time.Millisecond))
	}
	return b.String()
}

// About returns the path of the resource.
func (e *HeldError) About() string { return e.Resource }

// Unwrap returns the sentinel and the service's response.
func (e *HeldError) Unwrap() []error { return chain(ErrHeld, e.Err) }

// ContentError describes a blob that cannot be a lock.
type ContentError struct {
	Resource string
	Size     int64 // of the content, in bytes
}

func (e *ContentError) Error() string {
	return fmt.Sprintf("%s: the blob has %d bytes of content; a lock needs a blob of its own: choose another name, or allow content", e.Resource, e.Size)
}

// About returns the path of the resource.
func (e *ContentError) About() string { return e.Resource }

// Unwrap returns the sentinel.
func (e *ContentError) Unwrap() error { return ErrContent }

// Reason is why a lease was lost.
type Reason uint8

// The reasons.
const (
	// Stopped: no renewal has succeeded for two thirds of the duration. The work must stop now, so that it has stopped
	// when the lease expires. The lease may still be held, and a later renewal may still succeed.
	Stopped Reason = iota + 1
	// Expired: no renewal has succeeded for the whole duration. Another client may hold the lease.
	Expired
	// Taken: the service no longer knows the lease id: the lease expired and another client acquired it or changed the
	// resource, or a client that knew the id released or changed the lease.
	Taken
	// Broken: another client broke the lease.
	Broken
	// Deleted: the blob or container was deleted.
	Deleted
	// Unhealthy: like Stopped, because the health check failed and the lease was deliberately not renewed.
	Unhealthy
)

var reasonNames = [...]string{"", "stopped", "expired", "taken", "broken", "deleted", "unhealthy"}

func (r Reason) String() string {
	if int(r) < len(reasonNames) {
		return reasonNames[r]
	}
	return "invalid"
}

// LostError describes the loss of a lease.
type LostError struct {
	Resource string
	Reason   Reason
	Duration time.Duration // of the lease
	Renewed  time.Time     // when the last request that acquired or renewed the lease was sent, by the local clock
	Elapsed  time.Duration // from Renewed until the loss was noticed
	Jump     time.Duration // the part of Elapsed in which the machine was suspended or its clock set; 0 below 1 s
	Err      error         // the service's response, or the error of the last failed renewal; nil if there is none
}

func (e *LostError) Error() string {
	var b strings.Builder
	b.WriteString(e.Resource + ": lease ")
	switch e.Reason {
	case Stopped:
		fmt.Fprintf(&b, "in doubt: not renewed for %v of %v", e.Elapsed.Round(time.Millisecond), e.Duration)
	case Unhealthy:
		fmt.Fprintf(&b, "given up: health check failed, not renewed for %v of %v", e.Elapsed.Round(time.Millisecond), e.Duration)
	case Expired:
		fmt.Fprintf(&b, "expired: not renewed for %v of %v", e.Elapsed.Round(time.Millisecond), e.Duration)
	case Taken:
		b.WriteString("lost: this process no longer holds it")
	case Broken:
		b.WriteString("broken by another")
	case Deleted:
		b.WriteString("lost: the leased resource was deleted")
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

// About returns the path of the resource.
func (e *LostError) About() string { return e.Resource }

// Unwrap returns the sentinel and the service's response.
func (e *LostError) Unwrap() []error { return chain(ErrLost, e.Err) }

// UnknownError describes a request whose outcome is unknown. It is the type that package optimistic returns, too.
type UnknownError = azerr.UnknownError

func chain(sentinel, cause error) []error {
	if cause == nil {
		return []error{sentinel}
	}
	return []error{sentinel, cause}
}
