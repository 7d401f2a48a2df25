package table

import (
	"context"
	"encoding/json"
	"errors"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore"
	"github.com/spf13/cobra"

	"github.com/azconc/azconc/cmd/azconc/internal/cli"
	"github.com/azconc/azconc/cmd/azconc/internal/cli/change"
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
		v, err := optimistic.Read(ctx, target, &optimistic.ReadOptions{SendOptions: f.Sending()})
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
		properties, err := source.load(ctx, f, on, nil)
		if err != nil {
			return nil, err
		}
		r, err := optimistic.Create(ctx, target, properties, &optimistic.WriteOptions{SendOptions: f.Sending()})
		if errors.Is(err, optimistic.ErrExists) {
			err = fail.WithHint(err, "azconc table update changes it; azconc table upsert replaces it, last writer wins")
		}
		return cli.Written(on, "created", r, err)
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
		stored := func() (tables.Properties, error) {
			v, err := optimistic.Read(ctx, target, &optimistic.ReadOptions{SendOptions: f.Sending()})
			switch {
			case azerr.Classify(err).Kind == azerr.Unauthorised:
				return nil, typesHint(err)
			case errors.Is(err, optimistic.ErrNotFound):
				return nil, nil
			case err != nil:
				return nil, err
			}
			return v.Value, nil
		}
		if !*merge {
			stored, target.Mode = nil, tables.ReplaceWhole
		}
		properties, err := source.load(ctx, f, on, stored)
		if err != nil {
			return nil, err
		}
		r, err := tables.Upsert(ctx, target, properties, &tables.TableOptions{Hooks: f.Monitor.Hooks()})
		r.Requests, r.Elapsed = int(f.Requests.Load()), time.Since(f.Began) // with what the types took
		return cli.Written(on, "upserted", r, err)
	})
}

func newReplaceCmd(f *cli.Factory) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "replace <table/partition/row> --if-match <etag> {--file <file> | --set <name=value>…}",
		Short: "Replace all of an entity's properties, if it is still at a version",
		Long: `Replace all of an entity's properties, if it is still at a version. Properties that are not given are removed.

The entity is read first, so that the operations that it remembers (--op-id) are kept.`,
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

The entity is read first. An existing property keeps its type if the new value fits it.`,
		Example: `  azconc table merge jobs/eu/17 --if-match "$ETAG" --set state=done
  azconc table merge jobs/eu/17 --if-match '*' --set state=done`,
	}
	return putting(f, cmd, tables.MergeGiven, "merged")
}

// putting makes cmd a verb that writes an entity which has a version.
func putting(f *cli.Factory, cmd *cobra.Command, mode tables.Mode, done string) *cobra.Command {
	var source entityFlags
	var o optimistic.UpdateOptions
	source.add(cmd.Flags())
	addIfMatch(cmd.Flags(), &o.Conditions.IfMatch)
	flags.AddConfirmConflicts(cmd.Flags(), &o.ConfirmConflicts)
	return cli.On(f, cmd, source.parse, f.Entity, func(ctx context.Context, on ref.Table, target entity) (cli.Result, error) {
		data, err := source.document(ctx, f, on)
		if err == nil {
			_, err = source.properties(data, nil) // before anything is sent
		}
		if err != nil {
			return nil, err
		}
		target.Mode = mode
		o.Hooks = f.Monitor.Hooks()
		r, err := optimistic.Update(ctx, target, func(_ context.Context, p *tables.Properties) (err error) {
			if mode == tables.ReplaceGiven {
				*p = nil
			}
			*p, err = source.properties(data, *p)
			return err
		}, &o)
		return cli.Written(on, done, r, flags.UnconfirmedHint(err))
	})
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
		r, err := optimistic.Delete(ctx, target, optimistic.State{ETag: ifMatch}, &optimistic.WriteOptions{SendOptions: f.Sending()})
		if err != nil {
			return nil, fail.Tally(err, r)
		}
		return f.DoneBy("deleted", on, r), nil
	})
}

func newUpdateCmd(f *cli.Factory) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "update <table/partition/row> {--exec <command> | --jq <expression> | --set <name=value>… | --file <file>}",
		Short: "Change an entity exactly once, despite concurrent writers",
		Long: `Change an entity exactly once, despite concurrent writers.

Its properties are read as JSON and changed, and those that differ are written back on condition that the entity has not
changed; if it has, azconc starts over from the new version. With --if-match the base must be that version and a conflict is
final.

A property keeps its type: a Double stays one when it becomes a whole number. A new property has the type that its value
suggests, unless a member "name@odata.type" gives another. An Int64 is a number to --jq, and a string to --exec, since most
programs would round it.`,
		Example: `  azconc table update jobs/eu/17 --jq '.n += 1'
  azconc table update jobs/eu/17 --set state=done --op-id deploy-42`,
	}
	source := change.ChangeFlags{Properties: true}
	source.Add(cmd.Flags())
	var o optimistic.UpdateOptions
	flags.Text(cmd.Flags(), &o.Conditions.IfMatch, "if-match", "only if it has this `ETag`; a conflict is final", parseETag)
	cmd.Flags().BoolVar(&o.Create, "create", false, "create the entity if it does not exist; the change starts from {}")
	cmd.Flags().BoolVar(&o.DryRun, "dry-run", false, "print the change as a diff and write nothing")
	flags.Update(cmd.Flags(), &o, "the entity", optimistic.OperationsKept)
	var changing change.Change
	parse := cli.Checked(parseTable(3), func() (err error) {
		if changing, err = source.Parse(f.Env); err == nil && o.Create && o.Conditions.IfMatch != "" {
			err = fail.WithHint(fail.Usagef("--create and --if-match cannot both be given"), "--if-match asks for an entity that exists")
		}
		return err
	})
	return cli.On(f, cmd, parse, f.Entity, func(ctx context.Context, on ref.Table, target entity) (cli.Result, error) {
		if err := change.Prepare(ctx, f, changing); err != nil {
			return nil, err
		}
		o.Hooks = f.Monitor.Hooks()
		var before, after []byte
		r, err := optimistic.Update(ctx, target, func(ctx context.Context, p *tables.Properties) (err error) {
			if before, err = json.MarshalIndent(*p, "", "  "); err != nil {
				return err
			}
			if *p, err = changed(ctx, on, changing, *p); err != nil {
				return err
			}
			after, err = json.MarshalIndent(*p, "", "  ")
			return err
		}, &o)
		if err != nil {
			return nil, fail.Tally(change.CreateHint(err, &o), r)
		}
		result := cli.NewWriteResult(on, "updated", r)
		if o.DryRun {
			result.Outcome = "dry_run"
			return nil, change.PrintDiff(f, result, append(before, '\n'), append(after, '\n'))
		}
		return result, nil
	})
}

// changed applies a change to the properties of on.
func changed(ctx context.Context, on ref.Table, c change.Change, p tables.Properties) (tables.Properties, error) {
	_, inProcess := c.(*change.JqChange) // which calculates with integers of any size
	data, err := EntityText(p, inProcess)
	if err != nil {
		return nil, err
	}
	after, err := c.Apply(ctx, change.BaseContent{
		Resource: on.String(), Exists: true, ETag: string(optimistic.BaseOf(ctx).ETag), Attempt: optimistic.EarlierRuns(ctx) + 1, Data: data,
	})
	if err == nil {
		err = checkKeys(on, after)
	}
	if err != nil {
		return nil, err
	}
	_, given := c.(*change.SetChange)
	return parseChanged(p, after, given)
}
