package lease

import (
	"context"

	"github.com/spf13/pflag"

	"github.com/azconc/azconc/cmd/azconc/internal/cli"
	"github.com/azconc/azconc/cmd/azconc/internal/cli/fail"
	"github.com/azconc/azconc/cmd/azconc/internal/cli/flags"
	"github.com/azconc/azconc/pessimistic/manual"
)

type changeOptions struct {
	options
	To string
}

func (n leaseNoun) changeVerb() cli.Verb[changeOptions] {
	return cli.Verb[changeOptions]{
		Use:   "change " + n.arg() + " --lease-id <id> [--to <id>]",
		Short: "Change the id of the lease and print the new one",
		Long: `Change the id of the lease and print the new one.

The old id is invalid from then on, so a lease can be handed to another holder without being released.`,
		Example: "  LEASE=$(azconc " + string(n) + " lease change " + n.example() + " --lease-id $LEASE)",
		Flags: func(opts *changeOptions, set *pflag.FlagSet) {
			n.addHeld(&opts.options, set)
			set.StringVar(&opts.To, "to", "", "new `id`, a GUID (default a new one)")
		},
		Parse: func(opts *changeOptions, in cli.Input) (err error) {
			if opts.To, err = flags.ParseLeaseID(opts.To); err != nil {
				return fail.Usagef("--to is not a GUID")
			}
			return n.parseHeld(&opts.options, in)
		},
		Run: n.change,
	}
}

func (n leaseNoun) change(ctx context.Context, f *cli.Factory, opts *changeOptions) error {
	l, err := n.open(f, opts.On)
	if err != nil {
		return err
	}
	t := tally{op: "Change"}
	o := t.options(opts.Conditions)
	reply, err := manual.Change(ctx, l, opts.LeaseID, opts.To, &o)
	if err != nil {
		return t.judge(err)
	}
	return t.print(f, result{Outcome: "changed", Resource: opts.On.String(), LeaseID: reply.ID})
}
