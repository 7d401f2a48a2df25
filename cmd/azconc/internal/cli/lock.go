package cli

import (
	"fmt"
	"io"
	"time"

	"github.com/spf13/cobra"

	"github.com/azconc/azconc/pessimistic"
)

func newLockCmd(f *Factory) *cobra.Command {
	return newGroupCmd("lock", "Named locks with fencing tokens",
		newLockRunCmd(f, nil),
		newLockHoldCmd(f, nil),
		newLockShowCmd(f, nil),
		newLockListCmd(f, nil),
		newLockBreakCmd(f, nil),
		newLockGCCmd(f, nil),
	)
}

// parseLock reads container/name. A lock is a blob of that name, so that azconc blob lease sees it too.
func parseLock(arg string) (blobRef, error) {
	r, err := parseWritable(arg)
	if err != nil && r.Blob == "" && r.Container != "" {
		return r, withHint(usagef("%q does not name a lock", arg), "a lock is named container/name")
	}
	return r, err
}

// locker returns the locks of the container that on is in.
func (f *Factory) locker(on blobRef, opts *pessimistic.LockerOptions) (*pessimistic.Locker, error) {
	client, err := f.Container(on)
	if err != nil {
		return nil, err
	}
	k, err := pessimistic.NewLocker(client, opts)
	if err != nil {
		return nil, &usageError{err: err}
	}
	return k, nil
}

// lockShown is a lock as show and list print it.
type lockShown struct {
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
}

func showLock(container string, i pessimistic.LockInfo) lockShown {
	s := lockShown{
		Lock: container + "/" + i.Name, Held: i.Held, State: string(i.State), Owner: i.Owner, Fence: int64(i.Fence),
		Since: timeText(i.Since), ETag: string(i.ETag),
	}
	if s.Infinite = i.Duration == pessimistic.Infinite; i.Duration > 0 {
		s.LeaseMS = i.Duration.Milliseconds()
	}
	if i.Held && !i.Observed.IsZero() && !i.Since.IsZero() {
		s.HeldMS = i.Observed.Sub(i.Since).Milliseconds()
	}
	return s
}

// lines prints the facts for people. Who is named holds the lock, or held it last.
func (s lockShown) lines(w io.Writer) {
	held := "no, " + s.State
	who := "last owner"
	if s.Held {
		held, who = "yes", "owner"
		if s.HeldMS > 0 {
			held += ", for " + (time.Duration(s.HeldMS) * time.Millisecond).String()
		}
		if s.State == string(pessimistic.StateBreaking) {
			held += ", being broken"
		}
	}
	fence, lease := "", ""
	if s.Infinite {
		lease = "infinite"
	} else if s.LeaseMS > 0 {
		lease = (time.Duration(s.LeaseMS) * time.Millisecond).String()
	}
	if s.Fence != 0 {
		fence = fmt.Sprint(s.Fence)
	}
	printFields(w, "lock", s.Lock, "held", held, who, s.Owner, "since", s.Since, "lease", lease, "fence", fence, "etag", s.ETag)
}
