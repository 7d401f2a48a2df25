package lease

import (
	"context"

	"github.com/spf13/cobra"

	"github.com/azconc/azconc/cmd/azconc/internal/cli"
)

func newReleaseCmd(noun leaseNoun) func(*cli.Factory, func(*heldLeaseOptions) error) *cobra.Command {
	return func(f *cli.Factory, runF func(*heldLeaseOptions) error) *cobra.Command {
		cmd := newHeldLeaseCmd(f, noun, runF, releaseRun)
		cmd.Use = "release " + noun.arg() + " --lease-id <id>"
		cmd.Short = "Release the lease"
		cmd.Long = "Release the lease, so that it can be acquired at once. If it is not held under this id, the exit code is 9."
		cmd.Example = "  azconc " + string(noun) + " lease release " + noun.example() + " --lease-id $LEASE"
		return cmd
	}
}

func releaseRun(ctx context.Context, opts *heldLeaseOptions) error {
	l, err := leaseOn(opts.factory, opts.noun, opts.On)
	if err != nil {
		return err
	}
	s, err := cli.SendWrite(ctx, func(ctx context.Context) error { return l.Release(ctx, opts.LeaseID, conditionsOf(opts.Conditions)) })
	// A retry after a lost response finds that the id holds nothing, which is what a release requests.
	if LostAfter(s, err, "LeaseIdMismatchWithLeaseOperation", "LeaseNotPresentWithLeaseOperation") {
		err = nil
	}
	if err != nil {
		return cli.AfterAmbiguous(s, err)
	}
	return printLease(opts.factory, result{Outcome: "released", Resource: opts.On.String()}, s)
}
