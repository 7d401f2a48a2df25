package table

import (
	"context"
	"encoding/json"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore"
	"github.com/spf13/cobra"

	"github.com/azconc/azconc/cmd/azconc/internal/cli"
	"github.com/azconc/azconc/cmd/azconc/internal/cli/change"
	"github.com/azconc/azconc/cmd/azconc/internal/cli/fail"
	"github.com/azconc/azconc/cmd/azconc/internal/cli/flags"
	"github.com/azconc/azconc/cmd/azconc/internal/cli/ref"
	"github.com/azconc/azconc/optimistic"
	"github.com/azconc/azconc/optimistic/tables"
)

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
	var ifMatch azcore.ETag
	flags.Text(cmd.Flags(), &ifMatch, "if-match", "only if it has this `ETag`; a conflict is final", parseETag)
	create := cmd.Flags().Bool("create", false, "create the entity if it does not exist; the change starts from {}")
	dryRun := cmd.Flags().Bool("dry-run", false, "print the change as a diff and write nothing")
	var update flags.Update
	update.Add(cmd.Flags(), "the entity", optimistic.OperationsKept)
	var changing change.Change
	parse := func(arg string) (on ref.Table, err error) {
		if on, err = ref.ParseTable(arg, 3); err != nil {
			return on, err
		}
		if changing, err = source.Parse(f.Env); err == nil && *create && ifMatch != "" {
			err = fail.WithHint(fail.Usagef("--create and --if-match cannot both be given"), "--if-match asks for an entity that exists")
		}
		return on, err
	}
	return cli.On(f, cmd, parse, f.Entity, func(ctx context.Context, on ref.Table, target entity) (cli.Result, error) {
		if err := change.Prepare(ctx, f, changing); err != nil {
			return nil, err
		}
		options := update.Options(optimistic.Conditions{IfMatch: ifMatch}, f.Sending())
		options.Create, options.DryRun = *create, *dryRun
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
		}, options)
		if err != nil {
			return nil, fail.Tally(change.UpdateHint(flags.UnconfirmedHint(err), options.Conditions, *create), r)
		}
		result := cli.NewWriteResult(on, "updated", r)
		if *dryRun {
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
