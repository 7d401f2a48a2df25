package lease

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/spf13/pflag"

	"github.com/azconc/azconc/cmd/azconc/internal/cli"
	"github.com/azconc/azconc/cmd/azconc/internal/cli/fail"
	"github.com/azconc/azconc/cmd/azconc/internal/cli/flags"
	"github.com/azconc/azconc/pessimistic"
	"github.com/azconc/azconc/pessimistic/manual"
)

type acquireOptions struct {
	options
	Duration time.Duration
	Wait     time.Duration

	duration string
}

func (n leaseNoun) acquireVerb() cli.Verb[acquireOptions] {
	return cli.Verb[acquireOptions]{
		Use:   "acquire " + n.arg(),
		Short: "Acquire the lease and print its id",
		Long: `Acquire the lease and print its id. If another client holds it, the exit code is 6.

` + n.end() + `

The id is chosen before the request is sent, so that a lost response cannot leave a lease behind whose id is unknown: if
the outcome stays unknown, azconc tries to release it, and prints the id with exit code 5 if that fails too. Acquiring it
again under the same --lease-id ` + n.again() + `.`,
		Example: "  LEASE=$(azconc " + string(n) + " lease acquire " + n.example() + ")\n" +
			"  azconc " + string(n) + " lease acquire " + n.example() + n.durationExample() + " --wait 1m",
		Flags: func(opts *acquireOptions, set *pflag.FlagSet) {
			n.addDuration(set, &opts.duration)
			set.StringVar(&opts.LeaseID, "lease-id", "", "`id` to hold it under, a GUID (default a new one)")
			set.DurationVar(&opts.Wait, "wait", 0, "wait this long for another holder to release it")
			flags.WriteConditions(set, &opts.Conditions, n.conditions())
		},
		Parse: n.parseAcquire,
		Run:   n.acquire,
	}
}

func (n leaseNoun) parseAcquire(opts *acquireOptions, in cli.Input) (err error) {
	if opts.On, err = n.parse(in.Args[0]); err != nil {
		return err
	}
	if opts.Duration, err = ParseDuration("--duration", opts.duration); err != nil {
		return err
	}
	if n == "file" && opts.Duration != pessimistic.Infinite {
		return fail.WithHint(fail.Usagef("--duration %s: a file's lease does not expire", opts.duration), "omit --duration, and release the lease at the end")
	}
	if opts.LeaseID, err = flags.ParseLeaseID(opts.LeaseID); err != nil {
		return err
	}
	if opts.Wait < 0 {
		return fail.Usagef("--wait %v is negative", opts.Wait)
	}
	return nil
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

func (n leaseNoun) addDuration(set *pflag.FlagSet, to *string) {
	if n == "file" {
		set.StringVar(to, "duration", "infinite", "how long it lasts: infinite")
		return
	}
	set.StringVar(to, "duration", "60s", "how long it lasts: 15s to 60s, or infinite")
}

func (n leaseNoun) acquire(ctx context.Context, f *cli.Factory, opts *acquireOptions) error {
	l, err := n.open(f, opts.On)
	if err != nil {
		return err
	}
	t := tally{op: "Acquire"}
	o := &manual.AcquireOptions{Options: t.options(opts.Conditions), Duration: opts.Duration, Wait: opts.Wait, LeaseID: opts.LeaseID}
	reply, err := manual.Acquire(ctx, l, o)
	if _, unknown := errors.AsType[*pessimistic.UnknownError](err); unknown {
		if !f.JSON() { // which has the id in the object of the failure
			// A script reads the id as after a success. That it cannot be printed is not what the command fails with.
			_ = t.print(f, result{Outcome: "unknown", Resource: opts.On.String(), LeaseID: reply.ID})
		}
		return fail.WithHint(&acquireUnknown{err: t.judge(err), id: reply.ID},
			fmt.Sprintf("azconc %s lease release %s --lease-id %s frees it if it was acquired", n, opts.On, reply.ID))
	}
	if err != nil {
		return t.judge(err)
	}
	infinite := opts.Duration == pessimistic.Infinite
	return t.print(f, result{Outcome: "acquired", Resource: opts.On.String(), LeaseID: reply.ID, Infinite: infinite,
		DurationMS: max(0, opts.Duration.Milliseconds()), ETag: string(reply.ETag)})
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
