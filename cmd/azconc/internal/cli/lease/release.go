package lease

import (
	"context"

	"github.com/azconc/azconc/cmd/azconc/internal/cli"
	"github.com/azconc/azconc/pessimistic/manual"
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
	t := tally{op: "Release"}
	o := t.options(opts.Conditions)
	if err := manual.Release(ctx, l, opts.LeaseID, &o); err != nil {
		return t.judge(err)
	}
	return t.print(f, result{Outcome: "released", Resource: opts.On.String()})
}
