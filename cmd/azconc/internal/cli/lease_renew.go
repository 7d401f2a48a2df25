package cli

import (
	"context"

	"github.com/spf13/cobra"
)

func newLeaseRenewCmd(noun leaseNoun) func(*Factory, func(*heldLeaseOptions) error) *cobra.Command {
	return func(f *Factory, runF func(*heldLeaseOptions) error) *cobra.Command {
		cmd := newHeldLeaseCmd(f, noun, runF, leaseRenewRun)
		cmd.Use = "renew " + noun.arg() + " --lease-id <id>"
		cmd.Short = "Start the lease's time anew"
		cmd.Long = `Start the lease's time anew, for as long as it was acquired for. If it is lost the exit code is 9.

A lease that has expired can be renewed as long as nobody has acquired it or changed the ` + string(noun) + ` since.`
		cmd.Example = "  azconc " + string(noun) + " lease renew " + noun.example() + " --lease-id $LEASE"
		if noun == "file" {
			cmd.Short = "Leave a heartbeat, and see that the lease is still held"
			cmd.Long = `Leave a heartbeat in the file's metadata, and see that the lease is still held; if it is lost the exit code is 9.

A file's lease has no end, so nothing needs to be renewed; but who holds it for long should say that he is still there,
every 10 s or so: azconc file lease break --stale goes by it.`
		}
		return cmd
	}
}

func leaseRenewRun(ctx context.Context, opts *heldLeaseOptions) error {
	l, err := opts.factory.leased(opts.noun, opts.On, opts.LeaseID)
	if err != nil {
		return err
	}
	var holder string
	s, err := sendWrite(ctx, func(ctx context.Context) (err error) {
		holder, err = l.renew(ctx, opts.Conditions)
		return err
	})
	if err != nil {
		return err
	}
	// An emulator renews an expired lease for whoever held it, whatever id is sent. Its answer says for whom.
	if holder, err := parseLeaseID(holder); err == nil && holder != "" && holder != opts.LeaseID {
		return &lostLeaseError{why: "it was renewed for another holder"}
	}
	return opts.factory.printLease(leaseResult{Outcome: "renewed", Resource: opts.On.String(), LeaseID: opts.LeaseID}, s)
}

// lostLeaseError is a lease that its id does not hold, as the command line found out by itself.
type lostLeaseError struct{ why string }

func (e *lostLeaseError) Error() string    { return "lease lost: " + e.why }
func (e *lostLeaseError) verdict() verdict { return verdict{exitLost, "lost"} }
