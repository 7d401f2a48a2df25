package table

import (
	"context"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore"
	"github.com/spf13/pflag"

	"github.com/azconc/azconc/cmd/azconc/internal/cli"
	"github.com/azconc/azconc/cmd/azconc/internal/cli/fail"
	"github.com/azconc/azconc/cmd/azconc/internal/cli/ref"
	"github.com/azconc/azconc/optimistic"
)

type deleteEntityOptions struct {
	Entity  ref.Table
	IfMatch azcore.ETag
}

func deleteEntityVerb() cli.Verb[deleteEntityOptions] {
	return cli.Verb[deleteEntityOptions]{
		Use:   "delete-entity <table/partition/row> --if-match <etag>",
		Short: "Delete an entity if it is still at a version",
		Long: `Delete an entity if it is still at a version.

A deletion leaves no trace of which client requested it. If the response is lost and the entity is gone, a delete at a version
ends with exit code 5, because another client may have deleted it; a delete with '*' has succeeded.`,
		Example: "  azconc table delete-entity jobs/eu/17 --if-match \"$ETAG\"\n  azconc table delete-entity jobs/eu/17 --if-match '*'",
		Flags: func(opts *deleteEntityOptions, set *pflag.FlagSet) {
			addIfMatch(set, &opts.IfMatch)
		},
		Resource: func(opts *deleteEntityOptions, arg string) (err error) {
			opts.Entity, err = ref.ParseTable(arg, 3)
			return err
		},
		Run: deleteEntityRun,
	}
}

func deleteEntityRun(ctx context.Context, f *cli.Factory, opts *deleteEntityOptions) error {
	target, err := f.Entity(opts.Entity)
	if err != nil {
		return err
	}
	r, err := optimistic.Delete(ctx, target, optimistic.State{ETag: opts.IfMatch}, nil)
	if err != nil {
		return fail.Tally(err, r)
	}
	return f.Print(cli.DeleteResult{
		Outcome: "deleted", Resource: opts.Entity.String(), BaseETag: string(r.BaseETag), Ambiguous: r.Ambiguous, Resolved: r.Resolved,
		Cost: cli.Cost{Requests: int64(r.Requests), ElapsedMS: time.Since(f.Began).Milliseconds()},
	})
}
