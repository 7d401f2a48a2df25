package lease

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/google/uuid"
	"github.com/spf13/pflag"

	"github.com/azconc/azconc/cmd/azconc/internal/cli"
	"github.com/azconc/azconc/cmd/azconc/internal/cli/fail"
	"github.com/azconc/azconc/cmd/azconc/internal/cli/flags"
	"github.com/azconc/azconc/pkg/azerr"
	"github.com/azconc/azconc/pkg/lease"
	"github.com/azconc/azconc/pkg/retry"
)

type acquireOptions struct {
	options
	Seconds int32
	Wait    time.Duration

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
	if opts.Seconds, err = ParseSeconds("--duration", opts.duration); err != nil {
		return err
	}
	if n == "file" && opts.Seconds != -1 {
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

// poll spaces the attempts of a command that waits for a lease.
var poll = retry.Backoff{Base: 500 * time.Millisecond, Cap: 5 * time.Second}

func (n leaseNoun) acquire(ctx context.Context, f *cli.Factory, opts *acquireOptions) error {
	id := opts.LeaseID
	if id == "" {
		id = uuid.NewString()
	}
	l, err := n.open(f, opts.On)
	if err != nil {
		return err
	}
	r := result{Outcome: "acquired", Resource: opts.On.String(), LeaseID: id, Infinite: opts.Seconds < 0, DurationMS: max(0, int64(opts.Seconds)*1000)}
	waiting := retry.Budget{Attempts: -1, Elapsed: opts.Wait, Backoff: poll}.Start()
	for {
		var reply lease.Reply
		s, err := cli.SendWrite(ctx, func(ctx context.Context) (err error) {
			reply, err = l.Acquire(ctx, id, opts.Seconds, conditionsOf(opts.Conditions))
			return err
		})
		if err == nil {
			r.ETag = string(reply.ETag)
			return printLease(f, r, s)
		}
		if _, granted := errors.AsType[*lease.GrantedError](err); granted {
			letGo(ctx, l, id) // a file without a heartbeat would stay leased
		}
		if azerr.Classify(err).Kind != azerr.Held || waiting.Next(ctx, 0) != nil {
			// A refusal means that another client holds the lease: no other client has this id. An ambiguous last response proves nothing.
			if !azerr.Classify(err).Ambiguous() {
				return err
			}
			if opts.LeaseID == "" && letGo(ctx, l, id) {
				return err
			}
			if f.Output == "text" && !f.Quiet {
				fmt.Fprintln(f.Out, id) // so that a script reads it as after a success
			}
			return fail.WithHint(&acquireUnknown{err: cli.AfterAmbiguous(s, err), id: id},
				fmt.Sprintf("azconc %s lease release %s --lease-id %s frees it if it was acquired", n, opts.On, id))
		}
	}
}

// letGo releases a lease that may have been acquired although no response said so, and reports whether it is not held under
// the id now.
func letGo(ctx context.Context, l lease.Resource, id string) bool {
	ctx, cancel := retry.Detached(ctx, 5*time.Second)
	defer cancel()
	_, err := cli.SendWrite(ctx, func(ctx context.Context) error { return l.Release(ctx, id, lease.Conditions{}) })
	return err == nil || azerr.Classify(err).Kind == azerr.Lost
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
