package cli

import (
	"context"

	"github.com/spf13/cobra"

	"github.com/azconc/azconc/optimistic"
)

type leaseReleaseOptions struct {
	factory    *Factory
	noun       leaseNoun
	On         blobRef
	LeaseID    string
	Conditions optimistic.Conditions
}

func newLeaseReleaseCmd(noun leaseNoun) func(*Factory, func(*leaseReleaseOptions) error) *cobra.Command {
	return func(f *Factory, runF func(*leaseReleaseOptions) error) *cobra.Command {
		opts := &leaseReleaseOptions{factory: f, noun: noun}
		var conditions conditionFlags
		cmd := &cobra.Command{
			Use:     "release " + noun.arg() + " --lease-id <id>",
			Short:   "Let go of the lease",
			Long:    "Let go of the lease, so that others can have it at once. If it is not held under the id the exit code is 9.",
			Args:    resourceArgs(noun.arg()),
			Example: "  azconc " + string(noun) + " lease release " + noun.example() + " --lease-id $LEASE",
			RunE: func(cmd *cobra.Command, args []string) (err error) {
				if opts.On, err = noun.parse(args[0]); err != nil {
					return err
				}
				if opts.LeaseID, err = requiredLeaseID("--lease-id", opts.LeaseID); err != nil {
					return err
				}
				if opts.Conditions, err = conditions.forWrite(); err != nil {
					return err
				}
				if runF != nil {
					return runF(opts)
				}
				return leaseReleaseRun(cmd.Context(), opts)
			},
		}
		cmd.Flags().StringVar(&opts.LeaseID, "lease-id", "", "`id` under which it is held")
		conditions.add(cmd, noun.conditions())
		return cmd
	}
}

func leaseReleaseRun(ctx context.Context, opts *leaseReleaseOptions) error {
	l, err := opts.factory.leased(opts.noun, opts.On, opts.LeaseID)
	if err != nil {
		return err
	}
	s, err := sendWrite(ctx, func(ctx context.Context) error { return l.release(ctx, opts.Conditions) })
	// Once released, the id holds nothing: that is what a second try meets, and what was asked for.
	if lostAfter(s, err, "LeaseIdMismatchWithLeaseOperation", "LeaseNotPresentWithLeaseOperation") {
		err = nil
	}
	if err != nil {
		return afterAmbiguous(s, err)
	}
	return opts.factory.printLease(leaseResult{Outcome: "released", Resource: opts.On.String()}, s)
}
