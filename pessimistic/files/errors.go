package files

import (
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/azconc/azconc/pessimistic"
	"github.com/azconc/azconc/pkg/azerr"
)

var (
	// ErrUndeleted reports that a file that was marked for deletion still exists: an SMB client cleared the mark, or
	// the file was recreated meanwhile.
	ErrUndeleted = errors.New("not deleted: the mark for deletion was cleared, or the file was recreated")

	// ErrInUse reports that SMB clients have a file open. The error in the chain is an *InUseError, which is
	// pessimistic.ErrHeld too.
	ErrInUse = errors.New("in use by SMB clients")

	// ErrTorn reports that a file's content was only partly written. The error in the chain is a *TornError.
	ErrTorn = errors.New("partly written")
)

// InUseError describes a file that SMB clients have open. It is both ErrInUse and pessimistic.ErrHeld.
type InUseError struct {
	Resource string
	Reason   azerr.Reason // OpenHandle, RangeLocked, DeletePending or CacheFlush (the write may be applied)
	Handles  []Handle     // nil if the handles were not listed
	Waited   time.Duration
	Err      error // the service's response; also the cause of ctx's end if that ended the wait
}

func (e *InUseError) Error() string {
	var b strings.Builder
	b.WriteString(e.Resource + ": ")
	switch e.Reason {
	case azerr.RangeLocked:
		b.WriteString("bytes of it are locked by an SMB client")
	case azerr.DeletePending:
		b.WriteString("marked for deletion by an SMB client: neither deleted yet nor usable")
	case azerr.CacheFlush:
		b.WriteString("an SMB client has not flushed its cache yet")
	default:
		b.WriteString("held by an SMB client, which has it open")
	}
	if n := min(len(e.Handles), shownHandles); n > 0 {
		var names []string
		for _, h := range e.Handles[:n] {
			names = append(names, h.String())
		}
		b.WriteString(": " + strings.Join(names, "; "))
		if more := len(e.Handles) - n; more > 0 {
			fmt.Fprintf(&b, " and %d more", more)
		}
	}
	if e.Waited > 0 {
		fmt.Fprintf(&b, ", after waiting for %v", e.Waited.Round(time.Millisecond))
	}
	return b.String()
}

// About returns the path of the resource.
func (e *InUseError) About() string { return e.Resource }

// shownHandles is the number of handles that an error names.
const shownHandles = 3

// Unwrap returns the sentinels and the service's response.
func (e *InUseError) Unwrap() []error { return []error{ErrInUse, pessimistic.ErrHeld, e.Err} }

// errOpen is the error that WaitClosed derives from a list of handles: the service itself refuses nothing there.
var errOpen = errors.New("there are open handles")

// TornError reports how much of the new content has been written to a file when the write failed. Of the rest, each range of 4 MiB
// is the old content, zeros where the file has grown, or new content too, of the four that were in flight
// together; one whose response was lost may be either. The file is not repaired: write it again, or restore the old content.
type TornError struct {
	Resource string
	Written  int64 // bytes confirmed by the service, from the start of the file
	Size     int64 // of the new content
	Err      error // why the write did not continue
}

func (e *TornError) Error() string {
	return fmt.Sprintf("%s: partly written, %d of %d bytes: %s", e.Resource, e.Written, e.Size, azerr.Summary(e.Err))
}

// About returns the path of the resource.
func (e *TornError) About() string { return e.Resource }

// Unwrap returns the sentinel and the cause.
func (e *TornError) Unwrap() []error { return []error{ErrTorn, e.Err} }
