package lease

import (
	"context"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/azconc/azconc/cmd/azconc/internal/cli"
	"github.com/azconc/azconc/cmd/azconc/internal/cli/fail"
	"github.com/azconc/azconc/cmd/azconc/internal/cli/flags"
	"github.com/azconc/azconc/cmd/azconc/internal/cli/ref"
	"github.com/azconc/azconc/cmd/azconc/internal/cli/show"
	"github.com/azconc/azconc/pessimistic"
	"github.com/azconc/azconc/pessimistic/files"
	"github.com/azconc/azconc/pessimistic/manual"
	"github.com/azconc/azconc/pkg/azerr"
	"github.com/azconc/azconc/pkg/lease"
)

func (n noun) newAcquireCmd() *cobra.Command {
	lasts, most, again := "60s", "15s to 60s, or infinite", "extends or shortens it"
	end := "It is not renewed: it expires after --duration."
	example := "--duration 15s --wait 1m"
	if n.file() {
		lasts, most, again, example = "infinite", "infinite", "changes nothing", "--wait 1m"
		end = `It does not expire: it stays until it is released or broken. While it is held, no other client can write or delete the file,
not even over SMB; every client can read it. The file's metadata records the holder, with a first heartbeat (see renew).`
	}
	cmd := n.cmd("acquire", "", "Acquire the lease and print its id", `Acquire the lease and print its id. If another client holds it, the exit code is 6.

`+end+`

The id is chosen before the request is sent, so that a lost response cannot leave a lease behind whose id is unknown: if
the outcome stays unknown, azconc tries to release it, and prints the id with exit code 5 if that fails too. Acquiring it
again under the same --lease-id `+again+`.`, example)
	cmd.Example = "  LEASE=$(azconc " + n.name + " lease acquire " + n.example + ")\n" + cmd.Example
	set := cmd.Flags()
	var o manual.AcquireOptions
	AddDuration(set, &o.Duration, lasts, "how long it lasts: "+most)
	flags.LeaseID(set, &o.LeaseID, "`id` to hold it under, a GUID (default a new one)")
	flags.Duration(set, &o.Wait, "wait", true, "wait this long for another holder to release it")
	check := func() error {
		if n.file() && o.Duration != pessimistic.Infinite {
			return fail.WithHint(fail.Usagef("--duration %s: a file's lease does not expire", show.Duration(o.Duration)), "omit --duration, and release the lease at the end")
		}
		return nil
	}
	return n.verb(cmd, "Acquire", check, func(ctx context.Context, c *call) (result, error) {
		o.Options = c.options
		reply, err := manual.Acquire(ctx, c.lease, &o)
		if _, unknown := errors.AsType[*pessimistic.UnknownError](err); unknown {
			if !n.f.JSON() { // which has the id in the object of the failure
				// A script reads the id as after a success. That it cannot be printed is not what the command fails with.
				_ = n.f.Print(c.result(result{Outcome: "unknown", LeaseID: reply.ID}))
			}
			err = fail.WithFacts(fmt.Errorf("%w; it may be held under the id %s", judge(err), reply.ID), map[string]any{"lease_id": reply.ID})
			return result{}, fail.WithHint(err, fmt.Sprintf("azconc %s lease release %s --lease-id %s frees it if it was acquired", n.name, c.on, reply.ID))
		}
		return result{
			Outcome: "acquired", LeaseID: reply.ID, Infinite: o.Duration == pessimistic.Infinite,
			DurationMS: max(0, o.Duration.Milliseconds()), ETag: string(reply.ETag),
		}, judge(err)
	})
}

func (n noun) newRenewCmd() *cobra.Command {
	short, long := "Renew the lease", `Renew the lease for the duration it was acquired for. If it is lost, the exit code is 9.

An expired lease can still be renewed if nobody has acquired it since, and the `+n.name+` has not been changed.`
	if n.file() {
		short = "Write a heartbeat, and check that the lease is still held"
		long = `Write a heartbeat into the file's metadata, and check that the lease is still held; if it is lost, the exit code is 9.

A file's lease does not expire, so it needs no renewal. A long-lived holder should still write a heartbeat, about every 10 s:
azconc file lease break --stale relies on it.`
	}
	cmd := n.cmd("renew", "--lease-id <id>", short, long, "--lease-id $LEASE")
	return n.holding(cmd, "Renew", func(ctx context.Context, c *call) (result, error) {
		_, err := manual.Renew(ctx, c.lease, c.id, &c.options)
		if u, ok := errors.AsType[*pessimistic.UnknownError](err); ok {
			return result{}, u.Err // the lease may have been renewed, but must not be relied upon
		}
		return result{Outcome: "renewed", LeaseID: c.id}, judge(err)
	})
}

func (n noun) newChangeCmd() *cobra.Command {
	cmd := n.cmd("change", "--lease-id <id> [--to <id>]", "Change the id of the lease and print the new one", `Change the id of the lease and print the new one.

The old id is invalid from then on, so a lease can be handed to another holder without being released.`, "--lease-id $LEASE")
	to := ""
	flags.Text(cmd.Flags(), &to, "to", "new `id`, a GUID (default a new one)", func(text string) (string, error) {
		id, err := flags.ParseLeaseID(text)
		if err != nil {
			return "", fail.Usagef("--to is not a GUID")
		}
		return id, nil
	})
	return n.holding(cmd, "Change", func(ctx context.Context, c *call) (result, error) {
		reply, err := manual.Change(ctx, c.lease, c.id, to, &c.options)
		return result{Outcome: "changed", LeaseID: reply.ID}, judge(err)
	})
}

func (n noun) newReleaseCmd() *cobra.Command {
	cmd := n.cmd("release", "--lease-id <id>", "Release the lease",
		"Release the lease, so that it can be acquired at once. If it is not held under this id, the exit code is 9.", "--lease-id $LEASE")
	return n.holding(cmd, "Release", func(ctx context.Context, c *call) (result, error) {
		return result{Outcome: "released"}, judge(manual.Release(ctx, c.lease, c.id, &c.options))
	})
}

func (n noun) newBreakCmd() *cobra.Command {
	if n.file() {
		return n.newBreakFileCmd()
	}
	cmd := n.cmd("break", "[--period <duration> | --now]", "Break the lease without its id and print the seconds it has left",
		`Break the lease and print the seconds it has left, during which it cannot be acquired. No id is needed.

By default its remaining time runs out first (an infinite lease ends at once), so that a holder that tracks its time has
stopped by then. With --now it ends at once, and the holder learns of it only from its next request. Breaking a lease that is
already broken or free changes nothing.`, "--period 10s")
	var grace time.Duration
	var now bool
	check := AddEnding(cmd.Flags(), &grace, &now)
	return n.verb(cmd, "Break", check, func(ctx context.Context, c *call) (result, error) { return c.breakLease(ctx, grace, now) })
}

// AddEnding adds the flags that say how long a broken lease may still last, and returns what checks them.
func AddEnding(set *pflag.FlagSet, grace *time.Duration, now *bool) (check func() error) {
	flags.Within(set, grace, "period", 0, time.Minute, "how long it may still last at most: 0s to 60s")
	set.BoolVar(now, "now", false, "end it at once")
	return func() error {
		if set.Changed("period") && *now {
			return fail.Usagef("--period and --now cannot both be given")
		}
		*now = *now || set.Changed("period") && *grace == 0
		return nil
	}
}

func (c *call) breakLease(ctx context.Context, grace time.Duration, now bool) (result, error) {
	left, err := pessimistic.Break(ctx, c.lease, &pessimistic.BreakOptions{Grace: grace, Now: now, Conditions: c.options.Conditions, Hooks: c.options.Hooks})
	r := result{Outcome: "broken", RemainingMS: new(left.Milliseconds())}
	switch {
	case azerr.Has(err, "LeaseNotPresentWithLeaseOperation"): // nothing to break: a success, as for azconc lock break
		r.Outcome, err = "free", nil
	case left > 0:
		r.Outcome = "breaking"
	}
	return r, judge(err)
}

func (n noun) newBreakFileCmd() *cobra.Command {
	cmd := n.cmd("break", "[--stale <duration>]", "Break the lease at once, without its id",
		`Break the lease at once. No id is needed. The holder learns of it at its next write, which is refused.

A file's lease does not expire, so the lease of a holder that died stays. azconc writes a heartbeat into the file's metadata
every 10 s while it holds the lease: with --stale the lease is broken only if the last heartbeat is that old and none arrives
within another 15 s; otherwise the exit code is 6.`, "--stale 2m")
	var stale time.Duration
	flags.Within(cmd.Flags(), &stale, "stale", 30*time.Second, 0, "only if the last heartbeat is at least this old; 30s or more")
	return n.verb(cmd, "Break", nil, func(ctx context.Context, c *call) (result, error) {
		if stale == 0 {
			return c.breakLease(ctx, 0, false)
		}
		client, err := n.f.File(c.on.(ref.File)) //nolint:forcetypeassert // as parsed
		if err != nil {
			return result{}, err
		}
		return result{Outcome: "broken"}, files.BreakStale(ctx, client, stale, &files.BreakStaleOptions{Hooks: c.options.Hooks})
	})
}

func (n noun) newShowCmd() *cobra.Command {
	holder := "The service does not report who holds it or for how long; named locks do."
	if n.file() {
		holder = "If azconc holds it, the file's metadata names the holder and the time of its last heartbeat."
	}
	cmd := n.cmd("show", "", "Show the lease's state", "Show the lease's state: available, leased, expired, breaking or broken.\n\n"+holder, "")
	return cli.On(n.f, cmd, n.parse, n.open, func(ctx context.Context, on fmt.Stringer, l lease.Resource) (cli.Result, error) {
		seen, err := l.Look(ctx, "")
		r := ShownOf(seen, n.file())
		r.Outcome, r.Resource = "found", on.String()
		return r, err
	})
}

type Shown struct {
	Outcome  string `json:"outcome"`
	Resource string `json:"resource"`
	State    string `json:"state"`
	Status   string `json:"status"`
	Duration string `json:"duration"`
	ETag     string `json:"etag"`
	Owner    string `json:"owner,omitempty"` // of a file's lease
	Since    string `json:"since,omitempty"`
	Heard    string `json:"heard,omitempty"`
}

func (r Shown) Text(w io.Writer) {
	show.Fields(w, "resource", r.Resource, "state", r.State, "status", r.Status, "duration", r.Duration, "owner", r.Owner,
		"since", r.Since, "last heartbeat", r.Heard, "etag", r.ETag)
}

// ShownOf describes a lease; with its holder, if the resource's metadata names it.
func ShownOf(seen lease.Observation, holder bool) Shown {
	r := Shown{State: string(seen.State), Status: "unlocked", Duration: string(seen.Term), ETag: string(seen.ETag)}
	if seen.State.Free() {
		return r
	}
	r.Status = "locked"
	if holder {
		h := files.LeaseInfoOf(seen)
		r.Owner, r.Since, r.Heard = h.Owner, show.Time(h.Since), show.Time(h.Heartbeat)
	}
	return r
}
