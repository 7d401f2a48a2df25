package cli

import (
	"context"
	"errors"

	"github.com/spf13/cobra"
)

type electRunOptions struct {
	factory *Factory
	Name    blobRef
	Once    bool
	underFlags
}

func newElectCmd(f *Factory) *cobra.Command {
	return newGroupCmd("elect", "Elect one leader among many candidates", newElectRunCmd(f, nil))
}

func newElectRunCmd(f *Factory, runF func(*electRunOptions) error) *cobra.Command {
	opts := &electRunOptions{factory: f}
	cmd := &cobra.Command{
		Use:   "run <container/name> [flags] -- <command> [<arg>...]",
		Short: "Run a command while this machine is the leader",
		Long: `Run for election, and run the command once elected. If leadership is lost, the command is stopped and azconc runs for election
again. When the command ends by itself, azconc ends with its status, and another candidate can lead.

The command finds AZCONC_LOCK_NAME, AZCONC_LOCK_FENCE (the term: larger than every earlier one) and AZCONC_LEASE_ID in its
environment.

` + underLong + `

With --once azconc does not run again, and a lead that is lost is 76.`,
		Args:    opts.args("<container/name>"),
		Example: `  azconc elect run jobs/scheduler -- ./scheduler --term "$AZCONC_LOCK_FENCE"`,
		RunE: func(cmd *cobra.Command, args []string) (err error) {
			if opts.Name, err = parseLock(args[0]); err != nil {
				return err
			}
			if err := opts.parse(f, cmd); err != nil {
				return err
			}
			if runF != nil {
				return runF(opts)
			}
			return electRunRun(cmd.Context(), opts)
		},
	}
	opts.add(cmd)
	cmd.Flags().BoolVar(&opts.Once, "once", false, "do not run for election again after losing leadership")
	return cmd
}

func electRunRun(ctx context.Context, opts *electRunOptions) error {
	f := opts.factory
	k, err := f.locker(opts.Name, opts.lockerOptions(f))
	if err != nil {
		return err
	}
	for {
		err := f.runUnder(ctx, &opts.underFlags, lockAcquisition(k, opts.Name.String(), opts.Name.Blob, &opts.underFlags))
		if lost, ok := errors.AsType[*lostRunning](err); !ok || opts.Once || ctx.Err() != nil {
			return err
		} else if !f.Quiet {
			f.Notef("%s: %v; running for election again", opts.Name, lost)
		}
	}
}
