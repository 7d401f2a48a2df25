package table

import (
	"context"
	"encoding/json"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore"
	"github.com/spf13/pflag"

	"github.com/azconc/azconc/cmd/azconc/internal/cli"
	"github.com/azconc/azconc/cmd/azconc/internal/cli/change"
	"github.com/azconc/azconc/cmd/azconc/internal/cli/fail"
	"github.com/azconc/azconc/cmd/azconc/internal/cli/flags"
	"github.com/azconc/azconc/cmd/azconc/internal/cli/ref"
	"github.com/azconc/azconc/optimistic"
	"github.com/azconc/azconc/optimistic/tables"
)

type updateOptions struct {
	Entity      ref.Table
	Source      change.ChangeFlags
	IfMatch     azcore.ETag
	Create      bool
	DryRun      bool
	OperationID string
	MaxAttempts int
	Confirm     optimistic.Confirm

	change change.Change
}

func updateVerb() cli.Verb[updateOptions] {
	return cli.Verb[updateOptions]{
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
		Flags: func(opts *updateOptions, set *pflag.FlagSet) {
			opts.Source.Properties = true
			opts.Source.Add(set)
			flags.Text(set, &opts.IfMatch, "if-match", "only if it has this `ETag`; a conflict is final", parseETag)
			set.BoolVar(&opts.Create, "create", false, "create the entity if it does not exist; the change starts from {}")
			set.BoolVar(&opts.DryRun, "dry-run", false, "print the change as a diff and write nothing")
			flags.AddOperationID(set, &opts.OperationID, "the entity", optimistic.OperationsKept)
			flags.MaxAttempts(set, &opts.MaxAttempts)
			flags.AddConfirmConflicts(set, &opts.Confirm)
		},
		Resource: func(opts *updateOptions, arg string) (err error) {
			opts.Entity, err = ref.ParseTable(arg, 3)
			return err
		},
		Parse: func(opts *updateOptions, in cli.Input) (err error) {
			if opts.change, err = opts.Source.Parse(in.Env); err != nil {
				return err
			}
			if opts.Create && opts.IfMatch != "" {
				return fail.WithHint(fail.Usagef("--create and --if-match cannot both be given"), "--if-match asks for an entity that exists")
			}
			return nil
		},
		Run: updateRun,
	}
}

func updateRun(ctx context.Context, f *cli.Factory, opts *updateOptions) error {
	target, err := f.Entity(opts.Entity)
	if err != nil {
		return err
	}
	if err := change.Prepare(ctx, f, opts.change); err != nil {
		return err
	}
	update := &optimistic.UpdateOptions{
		Conditions: optimistic.Conditions{IfMatch: opts.IfMatch}, OperationID: opts.OperationID, Create: opts.Create, DryRun: opts.DryRun, Attempts: opts.MaxAttempts,
	}
	if opts.MaxAttempts > 0 {
		update.Elapsed = -1
	}
	update.ConfirmConflicts, update.Hooks = opts.Confirm, f.Monitor.Hooks()
	var before, after []byte
	r, err := optimistic.Update(ctx, target, func(ctx context.Context, p *tables.Properties) (err error) {
		if before, err = json.MarshalIndent(*p, "", "  "); err != nil {
			return err
		}
		_, inProcess := opts.change.(*change.JqChange) // which calculates with integers of any size
		data, err := EntityText(*p, inProcess)
		if err != nil {
			return err
		}
		changed, err := opts.change.Apply(ctx, change.BaseContent{
			Resource: opts.Entity.String(), Exists: true, ETag: string(optimistic.BaseOf(ctx).ETag), Attempt: optimistic.EarlierRuns(ctx) + 1, Data: data,
		})
		if err == nil {
			err = checkKeys(opts.Entity, changed)
		}
		if err != nil {
			return err
		}
		_, given := opts.change.(*change.SetChange)
		if *p, err = parseChanged(*p, changed, given); err != nil {
			return err
		}
		after, err = json.MarshalIndent(*p, "", "  ")
		return err
	}, update)
	if err != nil {
		return fail.Tally(change.UpdateHint(flags.UnconfirmedHint(err), update.Conditions, opts.Create), r)
	}
	if opts.DryRun {
		result := cli.NewWriteResult(opts.Entity, "updated", r)
		result.Outcome = "dry_run"
		return change.PrintDiff(f, result, append(before, '\n'), append(after, '\n'))
	}
	return f.PrintWrite(opts.Entity, "updated", r, nil)
}
