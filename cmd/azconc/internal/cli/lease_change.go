package cli

import (
	"context"
	"fmt"

	"github.com/google/uuid"
	"github.com/spf13/cobra"

	"github.com/azconc/azconc/optimistic"
)

type leaseChangeOptions struct {
	factory    *Factory
	noun       leaseNoun
	On         fmt.Stringer
	LeaseID    string
	To         string
	Conditions optimistic.Conditions
}

func newLeaseChangeCmd(noun leaseNoun) func(*Factory, func(*leaseChangeOptions) error) *cobra.Command {
	return func(f *Factory, runF func(*leaseChangeOptions) error) *cobra.Command {
		opts := &leaseChangeOptions{factory: f, noun: noun}
		var conditions conditionFlags
		cmd := &cobra.Command{
			Use:   "change " + noun.arg() + " --lease-id <id> [--to <id>]",
			Short: "Change the id of the lease and print the new one",
			Long: `Change the id of the lease and print the new one.

The old id is invalid from then on, so a lease can be handed to another holder without being released.`,
			Args:    resourceArgs(noun.arg()),
			Example: "  LEASE=$(azconc " + string(noun) + " lease change " + noun.example() + " --lease-id $LEASE)",
			RunE: func(cmd *cobra.Command, args []string) (err error) {
				if opts.On, err = noun.parse(args[0]); err != nil {
					return err
				}
				if opts.LeaseID, err = requiredLeaseID("--lease-id", opts.LeaseID); err != nil {
					return err
				}
				if opts.To, err = parseLeaseID(opts.To); err != nil {
					return usagef("--to is not a GUID")
				}
				if opts.Conditions, err = conditions.forWrite(); err != nil {
					return err
				}
				if runF != nil {
					return runF(opts)
				}
				return leaseChangeRun(cmd.Context(), opts)
			},
		}
		cmd.Flags().StringVar(&opts.LeaseID, "lease-id", "", "`id` under which it is held")
		cmd.Flags().StringVar(&opts.To, "to", "", "new `id`, a GUID (default a new one)")
		conditions.add(cmd, noun.conditions())
		return cmd
	}
}

func leaseChangeRun(ctx context.Context, opts *leaseChangeOptions) error {
	to := opts.To
	if to == "" {
		to = uuid.NewString()
	}
	s, err := sendWrite(ctx, func(ctx context.Context) error {
		// A client for each try: the SDK's forgets which id it holds after an error. A repeated change succeeds, so a
		// lost response only needs the request to be sent again.
		l, err := opts.factory.leased(opts.noun, opts.On, opts.LeaseID)
		if err != nil {
			return err
		}
		return l.change(ctx, to, opts.Conditions)
	})
	if err != nil {
		return afterAmbiguous(s, err)
	}
	return opts.factory.printLease(leaseResult{Outcome: "changed", Resource: opts.On.String(), LeaseID: to}, s)
}
