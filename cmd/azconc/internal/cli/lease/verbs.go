package lease

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"github.com/azconc/azconc/cmd/azconc/internal/cli"
	"github.com/azconc/azconc/cmd/azconc/internal/cli/fail"
	"github.com/azconc/azconc/cmd/azconc/internal/cli/flags"
	"github.com/azconc/azconc/cmd/azconc/internal/cli/ref"
	"github.com/azconc/azconc/cmd/azconc/internal/cli/show"
	"github.com/azconc/azconc/pessimistic"
	"github.com/azconc/azconc/pessimistic/files"
	"github.com/azconc/azconc/pessimistic/manual"
	"github.com/azconc/azconc/pkg/azerr"
)

func unchecked() error { return nil }

func (n leaseNoun) newAcquireCmd(f *cli.Factory) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "acquire " + n.arg(),
		Short: "Acquire the lease and print its id",
		Long: `Acquire the lease and print its id. If another client holds it, the exit code is 6.

` + n.end() + `

The id is chosen before the request is sent, so that a lost response cannot leave a lease behind whose id is unknown: if
the outcome stays unknown, azconc tries to release it, and prints the id with exit code 5 if that fails too. Acquiring it
again under the same --lease-id ` + n.again() + `.`,
		Example: "  LEASE=$(azconc " + string(n) + " lease acquire " + n.example() + ")\n" +
			"  azconc " + string(n) + " lease acquire " + n.example() + n.durationExample() + " --wait 1m",
	}
	set := cmd.Flags()
	lasts, most := "60s", "15s to 60s, or infinite"
	if n == "file" {
		lasts, most = "infinite", "infinite"
	}
	var o manual.AcquireOptions
	set.StringVar(&lasts, "duration", lasts, "how long it lasts: "+most)
	set.StringVar(&o.LeaseID, "lease-id", "", "`id` to hold it under, a GUID (default a new one)")
	set.DurationVar(&o.Wait, "wait", 0, "wait this long for another holder to release it")
	check := func() (err error) {
		if o.Duration, err = ParseDuration("--duration", lasts); err != nil {
			return err
		}
		if n == "file" && o.Duration != pessimistic.Infinite {
			return fail.WithHint(fail.Usagef("--duration %s: a file's lease does not expire", lasts), "omit --duration, and release the lease at the end")
		}
		if o.LeaseID, err = flags.ParseLeaseID(o.LeaseID); err != nil {
			return err
		}
		if o.Wait < 0 {
			return fail.Usagef("--wait %v is negative", o.Wait)
		}
		return nil
	}
	return n.verb(f, cmd, "Acquire", check, func(ctx context.Context, c *call) (result, error) {
		o.Options = c.options()
		reply, err := manual.Acquire(ctx, c.lease, &o)
		if _, unknown := errors.AsType[*pessimistic.UnknownError](err); unknown {
			if !f.JSON() { // which has the id in the object of the failure
				// A script reads the id as after a success. That it cannot be printed is not what the command fails with.
				_ = f.Print(c.result(result{Outcome: "unknown", LeaseID: reply.ID}))
			}
			return result{}, fail.WithHint(&acquireUnknown{err: judge(err), id: reply.ID},
				fmt.Sprintf("azconc %s lease release %s --lease-id %s frees it if it was acquired", n, c.on, reply.ID))
		}
		return result{
			Outcome: "acquired", LeaseID: reply.ID, Infinite: o.Duration == pessimistic.Infinite,
			DurationMS: max(0, o.Duration.Milliseconds()), ETag: string(reply.ETag),
		}, judge(err)
	})
}

// end says when an unreleased lease ends.
func (n leaseNoun) end() string {
	if n == "file" {
		return `It does not expire: it stays until it is released or broken. While it is held, no other client can write or delete the file,
not even over SMB; every client can read it. The file's metadata records the holder, with a first heartbeat (see renew).`
	}
	return "It is not renewed: it expires after --duration."
}

func (n leaseNoun) again() string {
	if n == "file" {
		return "changes nothing"
	}
	return "extends or shortens it"
}

func (n leaseNoun) durationExample() string {
	if n == "file" {
		return ""
	}
	return " --duration 15s"
}

// acquireUnknown is a lease that may be held under an id.
type acquireUnknown struct {
	err error
	id  string
}

func (e *acquireUnknown) Error() string {
	return e.err.Error() + "; it may be held under the id " + e.id
}
func (e *acquireUnknown) Unwrap() error         { return e.err }
func (e *acquireUnknown) Facts() map[string]any { return map[string]any{"lease_id": e.id} }

func (n leaseNoun) newRenewCmd(f *cli.Factory) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "renew " + n.arg() + " --lease-id <id>",
		Short: "Renew the lease",
		Long: `Renew the lease for the duration it was acquired for. If it is lost, the exit code is 9.

An expired lease can still be renewed if nobody has acquired it since, and the ` + string(n) + ` has not been changed.`,
		Example: "  azconc " + string(n) + " lease renew " + n.example() + " --lease-id $LEASE",
	}
	if n == "file" {
		cmd.Short = "Write a heartbeat, and check that the lease is still held"
		cmd.Long = `Write a heartbeat into the file's metadata, and check that the lease is still held; if it is lost, the exit code is 9.

A file's lease does not expire, so it needs no renewal. A long-lived holder should still write a heartbeat, about every 10 s:
azconc file lease break --stale relies on it.`
	}
	return n.holding(f, cmd, "Renew", unchecked, func(ctx context.Context, c *call, id string) (result, error) {
		o := c.options()
		_, err := manual.Renew(ctx, c.lease, id, &o)
		if u, ok := errors.AsType[*pessimistic.UnknownError](err); ok {
			return result{}, u.Err // the lease may have been renewed, but must not be relied upon
		}
		return result{Outcome: "renewed", LeaseID: id}, judge(err)
	})
}

func (n leaseNoun) newChangeCmd(f *cli.Factory) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "change " + n.arg() + " --lease-id <id> [--to <id>]",
		Short: "Change the id of the lease and print the new one",
		Long: `Change the id of the lease and print the new one.

The old id is invalid from then on, so a lease can be handed to another holder without being released.`,
		Example: "  LEASE=$(azconc " + string(n) + " lease change " + n.example() + " --lease-id $LEASE)",
	}
	to := cmd.Flags().String("to", "", "new `id`, a GUID (default a new one)")
	check := func() (err error) {
		if *to, err = flags.ParseLeaseID(*to); err != nil {
			return fail.Usagef("--to is not a GUID")
		}
		return nil
	}
	return n.holding(f, cmd, "Change", check, func(ctx context.Context, c *call, id string) (result, error) {
		o := c.options()
		reply, err := manual.Change(ctx, c.lease, id, *to, &o)
		return result{Outcome: "changed", LeaseID: reply.ID}, judge(err)
	})
}

func (n leaseNoun) newReleaseCmd(f *cli.Factory) *cobra.Command {
	cmd := &cobra.Command{
		Use:     "release " + n.arg() + " --lease-id <id>",
		Short:   "Release the lease",
		Long:    "Release the lease, so that it can be acquired at once. If it is not held under this id, the exit code is 9.",
		Example: "  azconc " + string(n) + " lease release " + n.example() + " --lease-id $LEASE",
	}
	return n.holding(f, cmd, "Release", unchecked, func(ctx context.Context, c *call, id string) (result, error) {
		o := c.options()
		return result{Outcome: "released"}, judge(manual.Release(ctx, c.lease, id, &o))
	})
}

func (n leaseNoun) newBreakCmd(f *cli.Factory) *cobra.Command {
	if n == "file" {
		return n.newBreakFileCmd(f)
	}
	cmd := &cobra.Command{
		Use:   "break " + n.arg() + " [--period <duration> | --now]",
		Short: "Break the lease without its id and print the seconds it has left",
		Long: `Break the lease and print the seconds it has left, during which it cannot be acquired. No id is needed.

By default its remaining time runs out first (an infinite lease ends at once), so that a holder that tracks its time has
stopped by then. With --now it ends at once, and the holder learns of it only from its next request. Breaking a lease that is
already broken or free changes nothing.`,
		Example: "  azconc " + string(n) + " lease break " + n.example() + "\n  azconc " + string(n) + " lease break " + n.example() + " --period 10s",
	}
	set := cmd.Flags()
	period := set.Duration("period", 0, "how long it may still last at most: 0s to 60s")
	now := set.Bool("now", false, "end it at once")
	check := func() error {
		switch {
		case set.Changed("period") && *now:
			return fail.Usagef("--period and --now cannot both be given")
		case *period < 0 || *period > time.Minute || *period%time.Second != 0:
			return fail.Usagef("--period %s is not between 0s and 60s, in whole seconds", show.Duration(*period))
		}
		return nil
	}
	return n.verb(f, cmd, "Break", check, func(ctx context.Context, c *call) (result, error) {
		return c.breakLease(ctx, *period, *now || set.Changed("period") && *period == 0)
	})
}

func (c *call) breakLease(ctx context.Context, grace time.Duration, now bool) (result, error) {
	left, err := pessimistic.Break(ctx, c.lease, &pessimistic.BreakOptions{Grace: grace, Now: now, Conditions: c.leaseConditions(), Hooks: c.hooks()})
	remaining := left.Milliseconds()
	r := result{Outcome: "broken", RemainingMS: &remaining}
	switch {
	case azerr.NotLeased(err): // nothing to break: a success, as for azconc lock break
		r.Outcome, err = "free", nil
	case left > 0:
		r.Outcome = "breaking"
	}
	return r, judge(err)
}

func (n leaseNoun) newBreakFileCmd(f *cli.Factory) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "break <share/path> [--stale <duration>]",
		Short: "Break the lease at once, without its id",
		Long: `Break the lease at once. No id is needed. The holder learns of it at its next write, which is refused.

A file's lease does not expire, so the lease of a holder that died stays. azconc writes a heartbeat into the file's metadata
every 10 s while it holds the lease: with --stale the lease is broken only if the last heartbeat is that old and none arrives
within another 15 s; otherwise the exit code is 6.`,
		Example: "  azconc file lease break jobs/report.csv --stale 2m\n  azconc file lease break jobs/report.csv",
	}
	stale := cmd.Flags().Duration("stale", 0, "only if the last heartbeat is at least this old; 30s or more")
	check := func() error {
		if cmd.Flags().Changed("stale") && *stale < 30*time.Second {
			return fail.Usagef("--stale %v is less than 30s: a heartbeat may be missed", *stale)
		}
		return nil
	}
	return n.verb(f, cmd, "Break", check, func(ctx context.Context, c *call) (result, error) {
		if *stale == 0 {
			return c.breakLease(ctx, 0, false)
		}
		client, err := f.File(c.on.(ref.File))
		if err != nil {
			return result{}, err
		}
		return result{Outcome: "broken"}, files.BreakStale(ctx, client, *stale, nil)
	})
}
