package lease

import (
	"context"
	"time"

	"github.com/spf13/pflag"

	"github.com/azconc/azconc/cmd/azconc/internal/cli"
	"github.com/azconc/azconc/cmd/azconc/internal/cli/fail"
	"github.com/azconc/azconc/cmd/azconc/internal/cli/flags"
	"github.com/azconc/azconc/cmd/azconc/internal/cli/ref"
	"github.com/azconc/azconc/cmd/azconc/internal/cli/show"
	"github.com/azconc/azconc/pessimistic"
	"github.com/azconc/azconc/pessimistic/files"
	"github.com/azconc/azconc/pkg/azerr"
)

type breakOptions struct {
	options
	Stale time.Duration

	period time.Duration
	now    bool
}

func (n leaseNoun) breakVerb() cli.Verb[breakOptions] {
	v := cli.Verb[breakOptions]{
		Use:   "break " + n.arg() + " [--period <duration> | --now]",
		Short: "Break the lease without its id and print the seconds it has left",
		Long: `Break the lease and print the seconds it has left, during which it cannot be acquired. No id is needed.

By default its remaining time runs out first (an infinite lease ends at once), so that a holder that tracks its time has
stopped by then. With --now it ends at once, and the holder learns of it only from its next request. Breaking a lease that is
already broken or free changes nothing.`,
		Example: "  azconc " + string(n) + " lease break " + n.example() + "\n  azconc " + string(n) + " lease break " + n.example() + " --period 10s",
		Flags: func(opts *breakOptions, set *pflag.FlagSet) {
			set.DurationVar(&opts.period, "period", 0, "how long it may still last at most: 0s to 60s")
			set.BoolVar(&opts.now, "now", false, "end it at once")
			flags.WriteConditions(set, &opts.Conditions, n.conditions())
		},
		Parse: n.parseBreak,
		Run:   n.breakRun,
	}
	if n == "file" {
		v.Use, v.Short = "break <share/path> [--stale <duration>]", "Break the lease at once, without its id"
		v.Long = `Break the lease at once. No id is needed. The holder learns of it at its next write, which is refused.

A file's lease does not expire, so the lease of a holder that died stays. azconc writes a heartbeat into the file's metadata
every 10 s while it holds the lease: with --stale the lease is broken only if the last heartbeat is that old and none arrives
within another 15 s; otherwise the exit code is 6.`
		v.Example = "  azconc file lease break jobs/report.csv --stale 2m\n  azconc file lease break jobs/report.csv"
		v.Flags = func(opts *breakOptions, set *pflag.FlagSet) {
			set.DurationVar(&opts.Stale, "stale", 0, "only if the last heartbeat is at least this old; 30s or more")
		}
	}
	return v
}

func (n leaseNoun) parseBreak(opts *breakOptions, in cli.Input) (err error) {
	if opts.On, err = n.parse(in.Args[0]); err != nil {
		return err
	}
	switch {
	case in.Flags.Changed("stale") && opts.Stale < 30*time.Second:
		return fail.Usagef("--stale %v is less than 30s: a heartbeat may be missed", opts.Stale)
	case in.Flags.Changed("period") && opts.now:
		return fail.Usagef("--period and --now cannot both be given")
	case opts.period < 0 || opts.period > time.Minute || opts.period%time.Second != 0:
		return fail.Usagef("--period %s is not between 0s and 60s, in whole seconds", show.Duration(opts.period))
	case in.Flags.Changed("period") && opts.period == 0:
		opts.now = true
	}
	return nil
}

func (n leaseNoun) breakRun(ctx context.Context, f *cli.Factory, opts *breakOptions) error {
	l, err := n.open(f, opts.On)
	if err != nil {
		return err
	}
	if opts.Stale > 0 {
		return breakStale(ctx, f, opts)
	}
	t := tally{op: "Break"}
	left, err := pessimistic.Break(ctx, l, &pessimistic.BreakOptions{Grace: opts.period, Now: opts.now, Conditions: conditionsOf(opts.Conditions),
		Hooks: t.hooks()})
	remaining := left.Milliseconds()
	r := result{Outcome: "broken", Resource: opts.On.String(), RemainingMS: &remaining}
	switch {
	case azerr.NotLeased(err): // nothing to break: a success, as for azconc lock break
		r.Outcome = "free"
	case err != nil:
		return t.judge(err)
	case left > 0:
		r.Outcome = "breaking"
	}
	return t.print(f, r)
}

func breakStale(ctx context.Context, f *cli.Factory, opts *breakOptions) error {
	client, err := f.File(opts.On.(ref.File))
	if err != nil {
		return err
	}
	if err := files.BreakStale(ctx, client, opts.Stale, nil); err != nil {
		return err
	}
	return new(tally).print(f, result{Outcome: "broken", Resource: opts.On.String()})
}
