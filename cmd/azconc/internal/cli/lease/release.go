package lease

import (
	"context"

	"github.com/azconc/azconc/cmd/azconc/internal/cli"
)

func (n leaseNoun) releaseVerb() cli.Verb[options] {
	return cli.Verb[options]{
		Use:     "release " + n.arg() + " --lease-id <id>",
		Short:   "Release the lease",
		Long:    "Release the lease, so that it can be acquired at once. If it is not held under this id, the exit code is 9.",
		Example: "  azconc " + string(n) + " lease release " + n.example() + " --lease-id $LEASE",
		Flags:   n.addHeld,
		Parse:   n.parseHeld,
		Run:     n.release,
	}
}

func (n leaseNoun) release(ctx context.Context, f *cli.Factory, opts *options) error {
	l, err := n.open(f, opts.On)
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
	return printLease(f, result{Outcome: "released", Resource: opts.On.String()}, s)
}
