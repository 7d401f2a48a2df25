package lock

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"time"

	"github.com/spf13/cobra"

	"github.com/azconc/azconc/cmd/azconc/internal/cli"
	"github.com/azconc/azconc/cmd/azconc/internal/cli/flags"
	"github.com/azconc/azconc/cmd/azconc/internal/cli/lease"
	"github.com/azconc/azconc/cmd/azconc/internal/cli/ref"
	"github.com/azconc/azconc/cmd/azconc/internal/cli/show"
	"github.com/azconc/azconc/pessimistic"
)

// endlessGrace is how long a holder has to stop by default: the rest of its lease, but no longer than this, the longest that the
// service accepts (REST: "Lease Blob"). The holder of an infinite lease renews it every 10 s, and would not know of a break that
// left it no time.
const endlessGrace = time.Minute

type breakResult struct {
	Outcome string `json:"outcome"` // broken, breaking or free
	shown
	RemainingMS int64 `json:"remaining_ms"`
	Requests    int64 `json:"requests"`
}

func (r breakResult) Text(w io.Writer) {
	switch r.Outcome {
	case "free":
		fmt.Fprintf(w, "free %s: it was not held\n", r.Lock)
	case "breaking":
		fmt.Fprintf(w, "breaking %s of %s, free in %s\n", r.Lock, show.Line(r.Owner), show.Duration(time.Duration(r.RemainingMS)*time.Millisecond))
	default:
		fmt.Fprintf(w, "broken %s of %s\n", r.Lock, show.Line(r.Owner))
	}
}

func newBreakCmd(f *cli.Factory) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "break <container/name> [--if-match <etag>] [--period <duration> | --now]",
		Short: "Break a lock that another client holds",
		Long: `Break a lock that another client holds: a named lock, an election, or a slot of a semaphore. Breaking a free lock changes nothing.

By default the lease's remaining time runs out first, a minute at most, so that a holder that tracks its time has stopped by then;
azconc lock run sends its command TERM at its next renewal, and KILL before the time is over. With --now the lease ends at once, and the
holder continues until its next renewal: use it only if the holder is known to be gone. --if-match, with the ETag from azconc
lock show, breaks that acquisition and no later one; if there is a new holder by then, the exit code is 4.`,
		Example: "  azconc lock break jobs/nightly\n  azconc lock break jobs/nightly --if-match 0x8DE4A1B2C3D4E5F --now",
	}
	var o pessimistic.BreakOptions
	flags.ETag(cmd.Flags(), &o.Conditions.IfMatch, "if-match", "`etag` of the acquisition to break")
	parse := cli.Checked(ParseLock, lease.AddEnding(cmd.Flags(), &o.Grace, &o.Now))
	return cli.On(f, cmd, parse, opener(f), func(ctx context.Context, on ref.Blob, k *pessimistic.Locker) (cli.Result, error) {
		if !o.Now {
			o.Grace = cmp.Or(o.Grace, endlessGrace)
		}
		b, err := k.Break(ctx, on.Blob, &o)
		if err != nil {
			return nil, err
		}
		r := breakResult{Outcome: "free", shown: showLock(on.Container, b.LockInfo), RemainingMS: b.After.Milliseconds(), Requests: f.Requests.Load()}
		switch {
		case b.Broken && b.After > 0:
			r.Outcome = "breaking"
		case b.Broken:
			r.Outcome = "broken"
		}
		return r, nil
	})
}

type gcResult struct {
	Outcome   string   `json:"outcome"`
	Container string   `json:"resource"`
	Locks     []string `json:"locks"`
	Seen      int      `json:"seen"`
	Deleted   int      `json:"deleted"`
	Held      int      `json:"held"`
	Recent    int      `json:"recent"`
	Foreign   int      `json:"foreign"`
	Orphans   int      `json:"orphans,omitempty"`
	Requests  int      `json:"requests"`
}

func (r gcResult) Text(w io.Writer) {
	word := "deleted"
	if r.Outcome == "dry_run" {
		word = "would delete"
	}
	for _, name := range r.Locks {
		fmt.Fprintln(w, word, show.Name(name))
	}
}

func newGCCmd(f *cli.Factory) *cobra.Command {
	var opts pessimistic.GCOptions
	cmd := &cobra.Command{
		Use:   "gc <container>",
		Short: "Delete the blobs of locks that are no longer used",
		Long: `Delete the blobs of locks that have not been acquired for a while. Only empty blobs that azconc created as locks are deleted.
Blobs that have content stay, even if they were locked (see azconc lock run --allow-content). Locks that are held, or acquired
while gc runs, stay as well. Fences keep growing: a new lock of the same name starts above the old one. The ticket blobs of locks
that are gone, "<lock>.azconc-waiters", are deleted too.`,
		Example: "  azconc lock gc jobs --unused 30d --dry-run",
	}
	set := cmd.Flags()
	flags.Prefix(set, &opts.Prefix)
	opts.Unused = 7 * show.Day
	flags.Within(set, &opts.Unused, "unused", time.Minute, 0, "time since it was last acquired, at least 1m")
	set.BoolVar(&opts.DryRun, "dry-run", false, "print what would be deleted, and delete nothing")
	return cli.On(f, cmd, ref.ParseContainer, opener(f), func(ctx context.Context, in ref.Blob, k *pessimistic.Locker) (cli.Result, error) {
		locks := []string{}
		opts.Each = func(i pessimistic.LockInfo) { locks = append(locks, in.Container+"/"+i.Name) }
		got, err := k.GC(ctx, &opts)
		if err != nil {
			return nil, err
		}
		r := gcResult{"deleted", in.Container, locks, got.Seen, got.Deleted, got.Held, got.Recent, got.Foreign, got.Orphans, got.Requests}
		deleted := "deleted"
		if opts.DryRun {
			r.Outcome, deleted = "dry_run", "would be deleted"
		}
		if !f.JSON() && !f.Quiet {
			orphans := ""
			if got.Orphans > 0 {
				orphans = ", " + show.Plural(got.Orphans, "ticket blob") + " without a lock " + deleted
			}
			f.Notef("%s seen, %d %s, %d held, %d used since, %d not made by azconc as a lock%s",
				show.Plural(got.Seen, "lock"), got.Deleted, deleted, got.Held, got.Recent, got.Foreign, orphans)
		}
		return r, nil
	})
}
