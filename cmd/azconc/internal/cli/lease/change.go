package lease

import (
	"context"
	"fmt"

	"github.com/google/uuid"
	"github.com/spf13/cobra"

	"github.com/azconc/azconc/cmd/azconc/internal/cli"
	"github.com/azconc/azconc/cmd/azconc/internal/cli/fail"
	"github.com/azconc/azconc/cmd/azconc/internal/cli/flags"
	"github.com/azconc/azconc/optimistic"
)

type changeOptions struct {
	factory    *cli.Factory
	noun       leaseNoun
	On         fmt.Stringer
	LeaseID    string
	To         string
	Conditions optimistic.Conditions
}

func newChangeCmd(noun leaseNoun) func(*cli.Factory, func(*changeOptions) error) *cobra.Command {
	return func(f *cli.Factory, runF func(*changeOptions) error) *cobra.Command {
		opts := &changeOptions{factory: f, noun: noun}
		var conditions flags.Conditions
		cmd := &cobra.Command{
			Use:   "change " + noun.arg() + " --lease-id <id> [--to <id>]",
			Short: "Change the id of the lease and print the new one",
			Long: `Change the id of the lease and print the new one.

The old id is invalid from then on, so a lease can be handed to another holder without being released.`,
			Args:    cli.ResourceArgs(noun.arg()),
			Example: "  LEASE=$(azconc " + string(noun) + " lease change " + noun.example() + " --lease-id $LEASE)",
			RunE: func(cmd *cobra.Command, args []string) (err error) {
				if opts.On, err = noun.parse(args[0]); err != nil {
					return err
				}
				if opts.LeaseID, err = requiredLeaseID("--lease-id", opts.LeaseID); err != nil {
					return err
				}
				if opts.To, err = flags.ParseLeaseID(opts.To); err != nil {
					return fail.Usagef("--to is not a GUID")
				}
				if opts.Conditions, err = conditions.ForWrite(); err != nil {
					return err
				}
				if runF != nil {
					return runF(opts)
				}
				return changeRun(cmd.Context(), opts)
			},
		}
		cmd.Flags().StringVar(&opts.LeaseID, "lease-id", "", "`id` under which it is held")
		cmd.Flags().StringVar(&opts.To, "to", "", "new `id`, a GUID (default a new one)")
		conditions.Add(cmd.Flags(), noun.conditions())
		return cmd
	}
}

func changeRun(ctx context.Context, opts *changeOptions) error {
	to := opts.To
	if to == "" {
		to = uuid.NewString()
	}
	l, err := leaseOn(opts.factory, opts.noun, opts.On)
	if err != nil {
		return err
	}
	s, err := cli.SendWrite(ctx, func(ctx context.Context) error { // a repeated change succeeds
		_, err := l.Change(ctx, opts.LeaseID, to, conditionsOf(opts.Conditions))
		return err
	})
	if err != nil {
		return cli.AfterAmbiguous(s, err)
	}
	return printLease(opts.factory, result{Outcome: "changed", Resource: opts.On.String(), LeaseID: to}, s)
}
