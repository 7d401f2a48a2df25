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
		runVerb().Command(f),
		holdVerb().Command(f),
		showVerb().Command(f),
		listVerb().Command(f),
		breakVerb().Command(f),
		gcVerb().Command(f),
	)
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

// shown is a lock as show and list print it.
type shown struct {
	Lock     string `json:"resource"`
	Held     bool   `json:"held"`
	State    string `json:"state"`
	Owner    string `json:"owner,omitempty"`
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

// lines prints the lock as text. The owner is the holder, or the last one if the lock is free.
func (s shown) lines(w io.Writer) {
	fence, who := "", "last owner"
	if s.Held {
		who = "owner"
	}
	if s.Fence != 0 {
		fence = fmt.Sprint(s.Fence)
	}
	s.fields(w, "lock", "held", who, "fence", fence)
}

// fields prints the lock as text, with names for what it is, that it is held, who holds it, and its fence.
func (s shown) fields(w io.Writer, what, holds, who, number, fence string) {
	held := "no, " + s.State
	if s.Held {
		held = "yes"
		if s.HeldMS > 0 {
			held += ", for " + show.Duration(time.Duration(s.HeldMS)*time.Millisecond)
		}
		if s.State == string(lease.Breaking) {
			held += ", being broken"
		}
	}
	lease := ""
	if s.Infinite {
		lease = "infinite"
	} else if s.LeaseMS > 0 {
		lease = show.Duration(time.Duration(s.LeaseMS) * time.Millisecond)
	}
	show.Fields(w, what, s.Lock, holds, held, who, s.Owner, "since", s.Since, "lease", lease, number, fence, "etag", s.ETag)
}

// word says whether the lock is held.
func (s shown) word() string {
	if s.Held {
		return "held"
	}
	return "free"
}
