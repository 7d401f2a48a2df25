package lease

import (
	"context"
	"errors"

	"github.com/azconc/azconc/cmd/azconc/internal/cli"
	"github.com/azconc/azconc/pessimistic"
	"github.com/azconc/azconc/pessimistic/manual"
)

func (n leaseNoun) renewVerb() cli.Verb[options] {
	v := cli.Verb[options]{
		Use:   "renew " + n.arg() + " --lease-id <id>",
		Short: "Renew the lease",
		Long: `Renew the lease for the duration it was acquired for. If it is lost, the exit code is 9.

An expired lease can still be renewed if nobody has acquired it since, and the ` + string(n) + ` has not been changed.`,
		Example: "  azconc " + string(n) + " lease renew " + n.example() + " --lease-id $LEASE",
		Flags:   n.addHeld,
		Parse:   n.parseHeld,
		Run:     n.renew,
	}
	if n == "file" {
		v.Short = "Write a heartbeat, and check that the lease is still held"
		v.Long = `Write a heartbeat into the file's metadata, and check that the lease is still held; if it is lost, the exit code is 9.

A file's lease does not expire, so it needs no renewal. A long-lived holder should still write a heartbeat, about every 10 s:
azconc file lease break --stale relies on it.`
	}
	return v
}

func (n leaseNoun) renew(ctx context.Context, f *cli.Factory, opts *options) error {
	l, err := n.open(f, opts.On)
	if err != nil {
		return err
	}
	t := tally{op: "Renew"}
	o := t.options(opts.Conditions)
	_, err = manual.Renew(ctx, l, opts.LeaseID, &o)
	if u, ok := errors.AsType[*pessimistic.UnknownError](err); ok {
		return u.Err // the lease may have been renewed, but must not be relied upon
	}
	if err != nil {
		return t.judge(err)
	}
	return t.print(f, result{Outcome: "renewed", Resource: opts.On.String(), LeaseID: opts.LeaseID})
}
