package lease

import (
	"context"

	"github.com/azconc/azconc/cmd/azconc/internal/cli"
	"github.com/azconc/azconc/cmd/azconc/internal/cli/fail"
	"github.com/azconc/azconc/cmd/azconc/internal/cli/flags"
	"github.com/azconc/azconc/pkg/lease"
)

func (n leaseNoun) renewVerb() cli.Verb[options] {
	v := cli.Verb[options]{
		Use:   "renew " + n.arg() + " --lease-id <id>",
		Short: "Renew the lease",
		Long: `Renew the lease for the duration it was acquired for. If it is lost, the exit code is 9.

An expired lease can be renewed as long as it has not been acquired, and the ` + string(n) + ` has not been changed, since.`,
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
	var reply lease.Reply
	s, err := cli.SendWrite(ctx, func(ctx context.Context) (err error) {
		reply, err = l.Renew(ctx, opts.LeaseID, conditionsOf(opts.Conditions))
		return err
	})
	if err != nil {
		return err
	}
	// An emulator renews an expired lease for its last holder, whatever id is sent. Its response names that holder.
	if holder, err := flags.ParseLeaseID(reply.ID); err == nil && holder != "" && holder != opts.LeaseID {
		return &lostLeaseError{why: "it was renewed for another holder"}
	}
	return printLease(f, result{Outcome: "renewed", Resource: opts.On.String(), LeaseID: opts.LeaseID}, s)
}

// lostLeaseError reports that the id does not hold the lease, although the service reported success.
type lostLeaseError struct{ why string }

func (e *lostLeaseError) Error() string { return "lease lost: " + e.why }
func (e *lostLeaseError) Verdict() fail.Verdict {
	return fail.Verdict{Code: fail.ExitLost, Outcome: "lost"}
}
