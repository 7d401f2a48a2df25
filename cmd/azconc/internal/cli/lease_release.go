package cli

import (
	"context"

	"github.com/spf13/cobra"
)

func newLeaseReleaseCmd(noun leaseNoun) func(*Factory, func(*heldLeaseOptions) error) *cobra.Command {
	return func(f *Factory, runF func(*heldLeaseOptions) error) *cobra.Command {
		cmd := newHeldLeaseCmd(f, noun, runF, leaseReleaseRun)
		cmd.Use = "release " + noun.arg() + " --lease-id <id>"
		cmd.Short = "Release the lease"
		cmd.Long = "Release the lease, so that it can be acquired at once. If it is not held under this id, the exit code is 9."
		cmd.Example = "  azconc " + string(noun) + " lease release " + noun.example() + " --lease-id $LEASE"
		return cmd
	}
}

func leaseReleaseRun(ctx context.Context, opts *heldLeaseOptions) error {
	l, err := opts.factory.leased(opts.noun, opts.On, opts.LeaseID)
	if err != nil {
		return err
	}
	s, err := sendWrite(ctx, func(ctx context.Context) error { return l.release(ctx, opts.Conditions) })
	// A retry after a lost response finds that the id holds nothing, which is what a release requests.
	if lostAfter(s, err, "LeaseIdMismatchWithLeaseOperation", "LeaseNotPresentWithLeaseOperation") {
		err = nil
	}
	if err != nil {
		return afterAmbiguous(s, err)
	}
	return opts.factory.printLease(leaseResult{Outcome: "released", Resource: opts.On.String()}, s)
}
