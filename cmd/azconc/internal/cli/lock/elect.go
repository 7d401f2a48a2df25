package lock

import (
	"context"
	"errors"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/azconc/azconc/cmd/azconc/internal/cli"
	"github.com/azconc/azconc/cmd/azconc/internal/cli/fail"
	"github.com/azconc/azconc/cmd/azconc/internal/cli/ref"
	"github.com/azconc/azconc/pessimistic"
	"github.com/azconc/azconc/pessimistic/election"
	"github.com/azconc/azconc/pkg/retry"
)

type electRunOptions struct {
	Name ref.Blob
	Once bool
	UnderFlags
}

func NewElectCmd(f *cli.Factory) *cobra.Command {
	return cli.NewGroupCmd("elect", "Elect one leader among many candidates",
		electRunVerb().Command(f),
		electShowVerb().Command(f),
		electResignVerb().Command(f),
	)
}

func electRunVerb() cli.Verb[electRunOptions] {
	return cli.Verb[electRunOptions]{
		Use:   "run <container/name> [flags] -- <command> [<arg>...]",
		Short: "Run a command while this machine is the leader",
		Long: `Run for election, and run the command once elected. If leadership is lost, azconc stops the command and runs for election
again. When the command ends by itself, azconc exits with its status, and another candidate can lead.

The command gets AZCONC_LOCK_NAME, AZCONC_LOCK_FENCE (the term: larger than every earlier one) and AZCONC_LEASE_ID in its
environment.

` + UnderLong + `

With --once azconc does not run for election again, and exits with 76 if leadership is lost.`,
		Example: `  azconc elect run jobs/scheduler -- sh -c './scheduler --term "$AZCONC_LOCK_FENCE"'`,
		Args:    cobra.ArbitraryArgs,
		Flags: func(opts *electRunOptions, set *pflag.FlagSet) {
			opts.Add(set)
			set.BoolVar(&opts.Once, "once", false, "do not run for election again after losing leadership")
		},
		Parse: func(opts *electRunOptions, in cli.Input) (err error) {
			if err := opts.Take(in, "<container/name>"); err != nil {
				return err
			}
			if opts.Name, err = ParseLock(in.Args[0]); err != nil {
				return err
			}
			return opts.Parse(in)
		},
		Run: electRunRun,
	}
}

func electRunRun(ctx context.Context, f *cli.Factory, opts *electRunOptions) error {
	k, err := Locker(f, opts.Name, opts.LockerOptions(f))
	if err != nil {
		return err
	}
	e, err := election.New(k, opts.Name.Blob, &election.Options{Candidacy: opts.lockOptions()})
	if err != nil {
		return &fail.UsageError{Err: err}
	}
	return begin(f, ctx, &opts.UnderFlags, acquisition(k, opts.Name.String(), opts.Name.Blob, &opts.UnderFlags), func(r *running) error {
		candidacy, cancel := context.WithCancelCause(context.WithoutCancel(ctx))
		elected := r.endOnSignal(cancel)
		defer func() { elected() }()
		var result error
		err := e.Run(candidacy, func(_ context.Context, h *pessimistic.Hold) error {
			elected()
			elected = func() {}
			if candidacy.Err() != nil { // it came too late
				return candidacy.Err()
			}
			result = r.hold(h)
			if _, left := errors.AsType[*CommandLeft](result); left {
				return election.Keep(errTermOver)
			}
			if lost, ok := errors.AsType[*LostRunning](result); ok && !opts.Once && ctx.Err() == nil {
				if !f.Quiet {
					f.Notef("%s: %v; running for election again", opts.Name, lost)
				}
				elected = r.endOnSignal(cancel)
				return result
			}
			return retry.Stop(errTermOver)
		})
		if errors.Is(err, errTermOver) {
			return result
		}
		return r.notAcquired(err)
	})
}

// errTermOver ends a candidacy with the result of its last term.
var errTermOver = errors.New("the term is over")
