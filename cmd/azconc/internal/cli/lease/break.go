package lease

import (
	"context"
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"github.com/azconc/azconc/cmd/azconc/internal/cli"
	"github.com/azconc/azconc/cmd/azconc/internal/cli/fail"
	"github.com/azconc/azconc/cmd/azconc/internal/cli/flags"
	"github.com/azconc/azconc/cmd/azconc/internal/cli/ref"
	"github.com/azconc/azconc/optimistic"
	"github.com/azconc/azconc/pessimistic"
	"github.com/azconc/azconc/pkg/azerr"
	"github.com/azconc/azconc/pkg/lease"
)

type breakOptions struct {
	factory    *cli.Factory
	noun       leaseNoun
	On         fmt.Stringer
	Period     *int32 // nil: the remaining time
	Stale      time.Duration
	Conditions optimistic.Conditions
}

func newBreakCmd(noun leaseNoun) func(*cli.Factory, func(*breakOptions) error) *cobra.Command {
	return func(f *cli.Factory, runF func(*breakOptions) error) *cobra.Command {
		opts := &breakOptions{factory: f, noun: noun}
		var conditions flags.Conditions
		var period time.Duration
		var now bool
		cmd := &cobra.Command{
			Use:   "break " + noun.arg() + " [--period <duration> | --now]",
			Short: "Break the lease without its id and print the seconds it has left",
			Long: `Break the lease and print the seconds it has left, during which it cannot be acquired. No id is needed.

By default its remaining time runs out first (an infinite lease ends at once), so that a holder that tracks its time has
stopped by then. With --now it ends at once, and the holder learns of it only from its next request. Breaking a lease that is
already broken or free changes nothing.`,
			Args:    cli.ResourceArgs(noun.arg()),
			Example: "  azconc " + string(noun) + " lease break " + noun.example() + "\n  azconc " + string(noun) + " lease break " + noun.example() + " --period 10s",
			RunE: func(cmd *cobra.Command, args []string) (err error) {
				if opts.On, err = noun.parse(args[0]); err != nil {
					return err
				}
				if opts.Stale != 0 && opts.Stale < 30*time.Second {
					return fail.Usagef("--stale %v is less than 30s: a heartbeat may be missed", opts.Stale)
				}
				given := cmd.Flags().Changed("period")
				switch {
				case given && now:
					return fail.Usagef("--period and --now cannot both be given")
				case period < 0 || period > time.Minute || period%time.Second != 0:
					return fail.Usagef("--period %v is not between 0s and 60s, in whole seconds", period)
				case given || now:
					seconds := int32(period / time.Second)
					opts.Period = &seconds
				}
				if opts.Conditions, err = conditions.ForWrite(); err != nil {
					return err
				}
				if runF != nil {
					return runF(opts)
				}
				return breakRun(cmd.Context(), opts)
			},
		}
		if noun == "file" {
			cmd.Use, cmd.Short = "break <share/path> [--stale <duration>]", "Break the lease at once, without its id"
			cmd.Long = `Break the lease at once. No id is needed. The holder learns of it at its next write, which is refused.

A file's lease does not expire, so the lease of a holder that died stays. azconc writes a heartbeat into the file's metadata
every 10 s while it holds the lease: with --stale the lease is broken only if the last heartbeat is that old and none arrives
within another 15 s; otherwise the exit code is 6.`
			cmd.Example = "  azconc file lease break jobs/report.csv --stale 2m\n  azconc file lease break jobs/report.csv"
			cmd.Flags().DurationVar(&opts.Stale, "stale", 0, "only if the last heartbeat is at least this old; 30s or more")
			return cmd
		}
		cmd.Flags().DurationVar(&period, "period", 0, "how long it may still last at most: 0s to 60s")
		cmd.Flags().BoolVar(&now, "now", false, "end it at once")
		conditions.Add(cmd.Flags(), noun.conditions())
		return cmd
	}
}

func breakRun(ctx context.Context, opts *breakOptions) error {
	l, err := leaseOn(opts.factory, opts.noun, opts.On)
	if err != nil {
		return err
	}
	if opts.Stale > 0 {
		return breakStaleRun(ctx, opts)
	}
	period := lease.Natural
	if opts.Period != nil {
		period = *opts.Period
	}
	var left time.Duration
	s, err := cli.SendWrite(ctx, func(ctx context.Context) (err error) {
		left, err = l.Break(ctx, period, conditionsOf(opts.Conditions))
		return err
	})
	remaining := left.Milliseconds()
	r := result{Outcome: "broken", Resource: opts.On.String(), RemainingMS: &remaining}
	switch {
	case azerr.Has(err, "LeaseNotPresentWithLeaseOperation"): // nothing to break: a success, as for azconc lock break
		r.Outcome = "free"
	case err != nil:
		return cli.AfterAmbiguous(s, err)
	case left > 0:
		r.Outcome = "breaking"
	}
	return printLease(opts.factory, r, s)
}

func breakStaleRun(ctx context.Context, opts *breakOptions) error {
	client, err := opts.factory.File(opts.On.(ref.File))
	if err != nil {
		return err
	}
	if err := pessimistic.BreakStale(ctx, client, opts.Stale); err != nil {
		return err
	}
	return printLease(opts.factory, result{Outcome: "broken", Resource: opts.On.String()}, cli.Sent{})
}
