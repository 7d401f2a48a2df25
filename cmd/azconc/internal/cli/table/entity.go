package table

import (
	"context"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore"
	"github.com/spf13/cobra"

	"github.com/azconc/azconc/cmd/azconc/internal/cli"
	"github.com/azconc/azconc/cmd/azconc/internal/cli/fail"
	"github.com/azconc/azconc/cmd/azconc/internal/cli/flags"
	"github.com/azconc/azconc/cmd/azconc/internal/cli/ref"
	"github.com/azconc/azconc/optimistic"
	"github.com/azconc/azconc/optimistic/tables"
	"github.com/azconc/azconc/pkg/azerr"
)

type entity = tables.Entity[tables.Properties]

func newGetCmd(f *cli.Factory) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "get <table/partition/row>",
		Short: "Print an entity's properties as JSON",
		Long: `Print an entity's properties as JSON, keeping every type: where the value alone does not determine its
type, a member "name@odata.type" gives it. With -o json the keys and the ETag are printed too.`,
		Example: "  azconc table get jobs/eu/17\n  azconc table get jobs/eu/17 -o json",
	}
	return cli.On(f, cmd, parseTable(3), f.Entity, func(ctx context.Context, on ref.Table, target entity) (cli.Result, error) {
		v, err := optimistic.Read(ctx, target, nil)
		if err != nil {
			return nil, err
		}
		return entityResult{
			Outcome: "found", Resource: on.String(), Partition: on.Partition, Row: on.Row, ETag: string(v.ETag), Entity: v.Value,
		}, nil
	})
}

func newInsertCmd(f *cli.Factory) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "insert <table/partition/row> {--file <file> | --set <name=value>…}",
		Short: "Create an entity if it does not exist",
		Long: `Create an entity. If it already exists, the exit code is 7. azconc recognizes its own insert if the response was
lost.`,
		Example: `  azconc table insert jobs/eu/17 --set n=0 --set owner=web-1
  echo '{"due@odata.type":"Edm.DateTime","due":"2026-01-31T12:00:00Z"}' | azconc table insert jobs/eu/18 --file -`,
	}
	var source entityFlags
	source.add(cmd.Flags())
	return cli.On(f, cmd, source.parse, f.Entity, func(ctx context.Context, on ref.Table, target entity) (cli.Result, error) {
		properties, err := source.load(ctx, f, on)
		if err != nil {
			return nil, err
		}
		r, err := optimistic.Create(ctx, target, properties, nil)
		return cli.Written(on, "created", r, exists(err))
	})
}

func newUpsertCmd(f *cli.Factory) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "upsert <table/partition/row> {--file <file> | --set <name=value>…} [--merge]",
		Short: "Insert or replace an entity: last writer wins",
		Long: `Insert or replace an entity: last writer wins. The service accepts no condition here.

All properties are replaced (Insert Or Replace). With --merge, properties that are not given are kept (Insert Or Merge), and
the given ones keep their types, which azconc reads first.`,
		Example: "  azconc table upsert jobs/eu/17 --set n=0\n  azconc table upsert jobs/eu/17 --merge --set state=done",
	}
	var source entityFlags
	source.add(cmd.Flags())
	merge := cmd.Flags().Bool("merge", false, "keep the properties that are not given")
	return cli.On(f, cmd, source.parse, f.Entity, func(ctx context.Context, on ref.Table, target entity) (cli.Result, error) {
		load := source.load
		if *merge {
			load = func(ctx context.Context, f *cli.Factory, on ref.Table) (tables.Properties, error) {
				return source.loadMerge(ctx, f, on, target)
			}
		} else {
			target.Mode = tables.ReplaceWhole
		}
		properties, err := load(ctx, f, on)
		if err != nil {
			return nil, err
		}
		r, err := tables.Upsert(ctx, target, properties, nil)
		if err != nil {
			return nil, err
		}
		r.Requests, r.Elapsed = int(f.Requests.Load()), 0 // with what the types took
		return cli.Written(on, "upserted", r, nil)
	})
}

func newReplaceCmd(f *cli.Factory) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "replace <table/partition/row> --if-match <etag> {--file <file> | --set <name=value>…}",
		Short: "Replace all of an entity's properties, if it is still at a version",
		Long: `Replace all of an entity's properties, if it is still at a version. Properties that are not given are removed.

The entity is read first, so that the operations that it remembers (--op-id) are kept. --if-match '*' reads nothing and
forgets them.`,
		Example: `  azconc table replace jobs/eu/17 --if-match "$ETAG" --file entity.json
  azconc table replace jobs/eu/17 --if-match '*' --set n=0`,
	}
	return putting(f, cmd, tables.ReplaceGiven, "replaced")
}

func newMergeCmd(f *cli.Factory) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "merge <table/partition/row> --if-match <etag> {--file <file> | --set <name=value>…}",
		Short: "Set some of an entity's properties, keep the rest, if it is still at a version",
		Long: `Set some of an entity's properties, keep the rest, if it is still at a version.

The entity is read first. An existing property keeps its type if the new value fits it. With --if-match '*' nothing
is read if "name@odata.type" names the types.`,
		Example: `  azconc table merge jobs/eu/17 --if-match "$ETAG" --set state=done
  azconc table merge jobs/eu/17 --if-match '*' --set state=done`,
	}
	return putting(f, cmd, tables.MergeGiven, "merged")
}

// putting makes cmd a verb that writes an entity which has a version.
func putting(f *cli.Factory, cmd *cobra.Command, mode tables.Mode, done string) *cobra.Command {
	var source entityFlags
	var ifMatch azcore.ETag
	var confirm optimistic.Confirm
	source.add(cmd.Flags())
	addIfMatch(cmd.Flags(), &ifMatch)
	flags.AddConfirmConflicts(cmd.Flags(), &confirm)
	return cli.On(f, cmd, source.parse, f.Entity, func(ctx context.Context, on ref.Table, target entity) (cli.Result, error) {
		data, err := source.document(ctx, f, on)
		if err != nil {
			return nil, err
		}
		merge := mode == tables.MergeGiven
		var properties tables.Properties
		if !merge {
			if properties, err = parsedOr(data, nil); err != nil {
				return nil, err
			}
		}
		base, err := entityBase(ctx, target, ifMatch, merge && untyped(data))
		if err != nil {
			return nil, err
		}
		if merge {
			if properties, err = source.typed(base.Value, data); err != nil {
				return nil, err
			}
		}
		target.Mode = mode
		send := f.Sending()
		send.ConfirmConflicts = confirm
		r, err := optimistic.Replace(ctx, target, base, properties, &optimistic.WriteOptions{SendOptions: send})
		r.Requests = int(f.Requests.Load()) // with the one that read the base
		return cli.Written(on, done, r, flags.UnconfirmedHint(err))
	})
}

// entityBase returns the version that a write replaces. The version etag is read, for the lineage and the operations
// that the write carries on. "*" is read only where types says that the types of the stored properties are needed; the
// write must not carry on its lineage, because the version that it replaces may be a later one.
func entityBase(ctx context.Context, target tables.Entity[tables.Properties], etag azcore.ETag, types bool) (*optimistic.Version[tables.Properties], error) {
	whatever := &optimistic.Version[tables.Properties]{State: optimistic.State{Exists: true, ETag: azcore.ETagAny}}
	if etag == azcore.ETagAny && !types {
		return whatever, nil
	}
	base, err := optimistic.Read(ctx, target, nil)
	switch {
	case azerr.Classify(err).Kind == azerr.Unauthorised && etag == azcore.ETagAny:
		return nil, typesHint(err)
	case err != nil:
		return nil, err
	case etag == azcore.ETagAny:
		whatever.Value = base.Value
		return whatever, nil
	case base.ETag != etag:
		return nil, &optimistic.ConflictError{Op: "replace", Resource: target.Resource(), Reason: azerr.Changed, Base: etag, Current: base.ETag}
	}
	return base, nil
}

func newDeleteEntityCmd(f *cli.Factory) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "delete-entity <table/partition/row> --if-match <etag>",
		Short: "Delete an entity if it is still at a version",
		Long: `Delete an entity if it is still at a version.

A deletion leaves no trace of which client requested it. If the response is lost and the entity is gone, a delete at a version
ends with exit code 5, because another client may have deleted it; a delete with '*' has succeeded.`,
		Example: "  azconc table delete-entity jobs/eu/17 --if-match \"$ETAG\"\n  azconc table delete-entity jobs/eu/17 --if-match '*'",
	}
	var ifMatch azcore.ETag
	addIfMatch(cmd.Flags(), &ifMatch)
	return cli.On(f, cmd, parseTable(3), f.Entity, func(ctx context.Context, on ref.Table, target entity) (cli.Result, error) {
		r, err := optimistic.Delete(ctx, target, optimistic.State{ETag: ifMatch}, nil)
		if err != nil {
			return nil, fail.Tally(err, r)
		}
		return cli.DeleteResult{
			Outcome: "deleted", Resource: on.String(), BaseETag: string(r.BaseETag), Sent: cli.Sent{Ambiguous: r.Ambiguous, Resolved: r.Resolved, Cost: f.Cost()},
		}, nil
	})
}
