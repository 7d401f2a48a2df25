package container

import (
	"context"

	"github.com/spf13/pflag"

	"github.com/azconc/azconc/cmd/azconc/internal/cli"
	"github.com/azconc/azconc/cmd/azconc/internal/cli/flags"
	"github.com/azconc/azconc/cmd/azconc/internal/cli/ref"
	"github.com/azconc/azconc/optimistic"
	"github.com/azconc/azconc/optimistic/settings"
)

type deleteOptions struct {
	Container  ref.Blob
	Conditions optimistic.Conditions
}

func deleteVerb() cli.Verb[deleteOptions] {
	return cli.Verb[deleteOptions]{
		Use:   "delete <container>",
		Short: "Delete a container and everything in it",
		Long: `Delete a container and everything in it.

The service frees the name about half a minute later; until then, creating it again fails with 409 ContainerBeingDeleted.`,
		Example: `  azconc container delete jobs
  azconc container delete jobs --if-unmodified-since 2026-01-31T12:00:00Z`,
		Flags: func(opts *deleteOptions, set *pflag.FlagSet) {
			flags.WriteConditions(set, &opts.Conditions, flags.CondDates|flags.CondLease)
		},
		Resource: func(opts *deleteOptions, arg string) (err error) {
			opts.Container, err = ref.ParseContainer(arg)
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
	r, err := settings.DeleteContainer(ctx, client, &settings.DeleteContainerOptions{Conditions: opts.Conditions})
	if err != nil {
		return err
	}
	return f.Print(cli.DeleteResult{Outcome: "deleted", Resource: opts.Container.String(), Ambiguous: r.Ambiguous, Resolved: r.Resolved, Cost: f.Cost()})
}
