// Package lock has azconc lock, semaphore, elect and table lock: holding something while a command runs, and ending the command before it
// is lost.
package lock

import (
	"fmt"
	"io"
	"time"

	"github.com/spf13/cobra"

	"github.com/azconc/azconc/cmd/azconc/internal/cli"
	"github.com/azconc/azconc/cmd/azconc/internal/cli/fail"
	"github.com/azconc/azconc/cmd/azconc/internal/cli/ref"
	"github.com/azconc/azconc/cmd/azconc/internal/cli/show"
	"github.com/azconc/azconc/pessimistic"
	"github.com/azconc/azconc/pkg/lease"
)

func NewCmd(f *cli.Factory) *cobra.Command {
	return cli.NewGroupCmd("lock", "Named locks with fencing tokens",
		newRunCmd(f),
		newHoldCmd(f),
		newShowCmd(f),
		newListCmd(f),
		newBreakCmd(f),
		newGCCmd(f),
	)
}

func NewElectCmd(f *cli.Factory) *cobra.Command {
	return cli.NewGroupCmd("elect", "Elect one leader among many candidates", newElectRunCmd(f))
}

func NewSemaphoreCmd(f *cli.Factory) *cobra.Command {
	return cli.NewGroupCmd("semaphore", "Admit at most n holders at a time", newSemaphoreRunCmd(f))
}

func NewTableLockCmd(f *cli.Factory) *cobra.Command {
	return cli.NewGroupCmd("lock", "Lock a table, or a partition of it", newTableRunCmd(f))
}

// ParseLock reads container/name. A lock is a blob of that name, so that azconc blob lease sees it too.
func ParseLock(arg string) (ref.Blob, error) {
	r, err := ref.ParseWritable(arg)
	if err != nil && r.Blob == "" && r.Container != "" {
		return r, fail.WithHint(fail.Usagef("%q does not name a lock", arg), "a lock is named container/name")
	}
	return r, err
}

// Locker returns a Locker for the container of on.
func Locker(f *cli.Factory, on ref.Blob, opts *pessimistic.LockerOptions) (*pessimistic.Locker, error) {
	client, err := f.Container(on)
	if err != nil {
		return nil, err
	}
	k, err := pessimistic.NewLocker(client, opts)
	if err != nil {
		return nil, &fail.UsageError{Err: err}
	}
	return k, nil
}

// opener opens the Locker of a verb that acquires nothing.
func opener(f *cli.Factory) func(ref.Blob) (*pessimistic.Locker, error) {
	return func(on ref.Blob) (*pessimistic.Locker, error) {
		return Locker(f, on, &pessimistic.LockerOptions{Hooks: f.Monitor.Hooks()})
	}
}

// shown is a lock as it is printed. An election is a lock whose holder leads, and whose fence is the term; a slot of a semaphore is a lock too.
type shown struct {
	Lock     string `json:"resource"`
	Held     bool   `json:"held"`
	State    string `json:"state"`
	Owner    string `json:"owner,omitempty"` // the holder, or the last one
	Fence    int64  `json:"fence,omitempty"`
	Since    string `json:"since,omitempty"`
	HeldMS   int64  `json:"held_ms,omitempty"`
	LeaseMS  int64  `json:"duration_ms,omitempty"`
	Infinite bool   `json:"infinite,omitempty"`
	ETag     string `json:"etag"`
	Waiting  int    `json:"waiting,omitempty"`
}

func showLock(container string, i pessimistic.LockInfo) shown {
	s := shown{
		Lock: container + "/" + i.Name, Held: i.Held, State: string(i.State), Owner: i.Owner, Fence: int64(i.Fence),
		Since: show.Time(i.Since), ETag: string(i.ETag), Waiting: i.Waiting,
	}
	if s.Infinite = i.Duration == pessimistic.Infinite; i.Duration > 0 {
		s.LeaseMS = i.Duration.Milliseconds()
	}
	if i.Held && !i.Observed.IsZero() && !i.Since.IsZero() {
		s.HeldMS = i.Observed.Sub(i.Since).Milliseconds()
	}
	return s
}

func (s shown) print(w io.Writer) {
	held, last, lasts, fence := "no, "+s.State, "last ", "", ""
	if s.Held {
		held, last = "yes", ""
	}
	if s.HeldMS > 0 {
		held += ", for " + show.Duration(time.Duration(s.HeldMS)*time.Millisecond)
	}
	if s.State == string(lease.Breaking) {
		held += ", being broken"
	}
	if s.Infinite {
		lasts = "infinite"
	} else if s.LeaseMS > 0 {
		lasts = show.Duration(time.Duration(s.LeaseMS) * time.Millisecond)
	}
	if s.Fence != 0 {
		fence = fmt.Sprint(s.Fence)
	}
	show.Fields(w, "lock", s.Lock, "held", held, last+"owner", s.Owner, "since", s.Since, "lease", lasts, last+"fence", fence, "etag", s.ETag)
}

// word says whether the lock is held.
func (s shown) word() string {
	if s.Held {
		return "held"
	}
	return "free"
}
