package lease

import (
	"context"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/azconc/azconc/cmd/azconc/internal/cli"
	"github.com/azconc/azconc/cmd/azconc/internal/cli/flags"
	"github.com/azconc/azconc/optimistic"
)

// heldLeaseOptions are those of the verbs that need nothing but the lease's id: renew and release.
type heldLeaseOptions struct {
	factory    *cli.Factory
	noun       leaseNoun
	On         fmt.Stringer
	LeaseID    string
	Conditions optimistic.Conditions
}

// newHeldLeaseCmd makes the command around run; the caller says what it is called and does.
func newHeldLeaseCmd(f *cli.Factory, noun leaseNoun, runF func(*heldLeaseOptions) error, run func(context.Context, *heldLeaseOptions) error) *cobra.Command {
	opts := &heldLeaseOptions{factory: f, noun: noun}
	var conditions flags.Conditions
	cmd := &cobra.Command{
		Args: cli.ResourceArgs(noun.arg()),
		RunE: func(cmd *cobra.Command, args []string) (err error) {
			if opts.On, err = noun.parse(args[0]); err != nil {
				return err
			}
			if opts.LeaseID, err = requiredLeaseID("--lease-id", opts.LeaseID); err != nil {
				return err
			}
			if opts.Conditions, err = conditions.ForWrite(); err != nil {
				return err
			}
			if runF != nil {
				return runF(opts)
			}
			return run(cmd.Context(), opts)
		},
	}
	cmd.Flags().StringVar(&opts.LeaseID, "lease-id", "", "`id` under which it is held")
	conditions.Add(cmd.Flags(), noun.conditions())
	return cmd
}
