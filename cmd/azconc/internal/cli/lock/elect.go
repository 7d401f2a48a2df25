package lock

import (
	"context"
	"errors"

	"github.com/spf13/cobra"

	"github.com/azconc/azconc/cmd/azconc/internal/cli"
	"github.com/azconc/azconc/cmd/azconc/internal/cli/ref"
)

type electRunOptions struct {
	factory *cli.Factory
	Name    ref.Blob
	Once    bool
	UnderFlags
}

func NewElectCmd(f *cli.Factory) *cobra.Command {
	return cli.NewGroupCmd("elect", "Elect one leader among many candidates", newElectRunCmd(f, nil))
}

func newElectRunCmd(f *cli.Factory, runF func(*electRunOptions) error) *cobra.Command {
	opts := &electRunOptions{factory: f}
	cmd := &cobra.Command{
		Use:   "run <container/name> [flags] -- <command> [<arg>...]",
		Short: "Run a command while this machine is the leader",
		Long: `Run for election, and run the command once elected. If leadership is lost, the command is stopped and azconc runs for election
again. When the command ends by itself, azconc ends with its status, and another candidate can lead.

The command finds AZCONC_LOCK_NAME, AZCONC_LOCK_FENCE (the term: larger than every earlier one) and AZCONC_LEASE_ID in its
environment.

` + UnderLong + `

With --once azconc does not run again, and a lead that is lost is 76.`,
		Args:    opts.Args("<container/name>"),
		Example: `  azconc elect run jobs/scheduler -- ./scheduler --term "$AZCONC_LOCK_FENCE"`,
		RunE: func(cmd *cobra.Command, args []string) (err error) {
			if opts.Name, err = ParseLock(args[0]); err != nil {
				return err
			}
			if err := opts.Parse(f, cmd); err != nil {
				return err
			}
			if runF != nil {
				return runF(opts)
			}
			return electRunRun(cmd.Context(), opts)
		},
	}
	opts.Add(cmd)
	cmd.Flags().BoolVar(&opts.Once, "once", false, "do not run for election again after losing leadership")
	return cmd
}

func electRunRun(ctx context.Context, opts *electRunOptions) error {
	f := opts.factory
	k, err := Locker(f, opts.Name, opts.LockerOptions(f))
	if err != nil {
		return err
	}
	for {
		err := RunUnder(f, ctx, &opts.UnderFlags, acquisition(k, opts.Name.String(), opts.Name.Blob, &opts.UnderFlags))
		if lost, ok := errors.AsType[*LostRunning](err); !ok || opts.Once || ctx.Err() != nil {
			return err
		} else if !f.Quiet {
			f.Notef("%s: %v; running for election again", opts.Name, lost)
		}
	}
}
