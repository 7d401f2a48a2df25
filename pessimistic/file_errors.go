package pessimistic

import (
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/azconc/azconc/pkg/azerr"
)

// InUseError tells who has a file open through SMB. It is an ErrHeld.
type InUseError struct {
	Resource string
	Reason   azerr.Reason // OpenHandle, RangeLocked, DeletePending, or CacheFlush, where a write may have been carried out
	Handles  []Handle     // nil when nobody was asked, or could not be
	Waited   time.Duration
	Err      error // the service's answer; also the cause of ctx's end when that ended the waiting
}

func (e *InUseError) Error() string {
	var b strings.Builder
	b.WriteString(e.Resource + ": ")
	switch e.Reason {
	case azerr.RangeLocked:
		b.WriteString("bytes of it are locked by an SMB client")
	case azerr.DeletePending:
		b.WriteString("marked for deletion by an SMB client, and neither gone nor usable")
	case azerr.CacheFlush:
		b.WriteString("an SMB client has not flushed its cache yet")
	default:
		b.WriteString("held by an SMB client, which has it open")
	}
	for i, h := range e.Handles {
		switch i {
		case 0:
			b.WriteString(": ")
		case shownHandles:
			fmt.Fprintf(&b, " and %d more", len(e.Handles)-i)
		default:
			b.WriteString("; ")
		}
		if i == shownHandles {
			break
		}
		b.WriteString(h.String())
	}
	if e.Waited > 0 {
		fmt.Fprintf(&b, ", after waiting for %v", e.Waited.Round(time.Millisecond))
	}
	return b.String()
}

// shownHandles is how many handles an error names.
const shownHandles = 3

// Unwrap returns the sentinel and the service's answer.
func (e *InUseError) Unwrap() []error { return chain(ErrHeld, e.Err) }

// errOpen is what WaitClosed makes of a list of handles: the service itself refuses nothing there.
var errOpen = errors.New("there are open handles")

// TornError tells how much of a new content is in a file whose writing has failed. The rest is the old content, or zeros
// where the file has grown. Nobody repairs it: write it again, or put back what it was.
type TornError struct {
	Resource string
	Written  int64 // bytes that the service has confirmed, from the beginning on
	Size     int64 // of the new content
	Err      error // why it could not go on
}

func (e *TornError) Error() string {
	return fmt.Sprintf("%s: partly written, %d of %d bytes: %s", e.Resource, e.Written, e.Size, azerr.Summary(e.Err))
}

// Unwrap returns the sentinel and the cause.
func (e *TornError) Unwrap() []error { return chain(ErrTorn, e.Err) }
