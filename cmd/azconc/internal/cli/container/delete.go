package container

import (
	"context"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/storage/azblob/container"
	"github.com/spf13/pflag"

	"github.com/azconc/azconc/cmd/azconc/internal/cli"
	"github.com/azconc/azconc/cmd/azconc/internal/cli/flags"
	"github.com/azconc/azconc/cmd/azconc/internal/cli/ref"
	"github.com/azconc/azconc/optimistic"
	"github.com/azconc/azconc/pkg/azerr"
)

type deleteOptions struct {
	Container  ref.Blob
	Conditions optimistic.Conditions
}

func deleteVerb() cli.Verb[deleteOptions] {
	var conditions flags.Conditions
	return cli.Verb[deleteOptions]{
		Use:   "delete <container>",
		Short: "Delete a container and everything in it",
		Long: `Delete a container and everything in it.

The service frees the name about half a minute later; until then, creating it again fails with 409 ContainerBeingDeleted.`,
		Example: `  azconc container delete jobs
  azconc container delete jobs --if-unmodified-since 2026-01-31T12:00:00Z`,
		Flags: func(_ *deleteOptions, set *pflag.FlagSet) {
			conditions.Add(set, flags.CondDates|flags.CondLease)
		},
		Parse: func(opts *deleteOptions, in cli.Input) (err error) {
			if opts.Container, err = ref.ParseContainer(in.Args[0]); err != nil {
				return err
			}
			opts.Conditions, err = conditions.ForWrite()
			return err
		},
		Run: deleteRun,
	}
}

func deleteRun(ctx context.Context, f *cli.Factory, opts *deleteOptions) error {
	client, err := f.Container(opts.Container)
	if err != nil {
		return err
	}
	r := cli.DeleteResult{Outcome: "deleted", Resource: opts.Container.String()}
	s, err := cli.SendWrite(ctx, func(ctx context.Context) error {
		_, err := client.Delete(ctx, &container.DeleteOptions{AccessConditions: flags.ContainerAccess(opts.Conditions)})
		return err
	})
	// A deletion leaves no trace of who made it. Without a condition that does not matter: what was asked for holds.
	unconditional := opts.Conditions == optimistic.Conditions{}
	if s.Ambiguous > 0 && unconditional && azerr.Has(err, "ContainerNotFound", "ContainerBeingDeleted") {
		r.Resolved, err = s.Ambiguous, nil
	}
	if err = cli.AfterAmbiguous(s, err); err != nil {
		return err
	}
	r.Ambiguous, r.Requests, r.ElapsedMS = s.Ambiguous, f.Requests.Load(), time.Since(f.Began).Milliseconds()
	return f.Print(r)
}
