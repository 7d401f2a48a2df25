package file

import (
	"context"

	"github.com/spf13/pflag"

	"github.com/azconc/azconc/cmd/azconc/internal/cli"
	"github.com/azconc/azconc/cmd/azconc/internal/cli/change"
	"github.com/azconc/azconc/cmd/azconc/internal/cli/ref"
	"github.com/azconc/azconc/pessimistic/files"
)

type updateOptions struct {
	File   ref.File
	Source change.ChangeFlags
	Write  writeFlags

	change change.Change
}

func updateVerb() cli.Verb[updateOptions] {
	return cli.Verb[updateOptions]{
		Use:   "update <share/path> {--exec <command> | --jq <expression> | --set <path=value>… | --file <file>}",
		Short: "Change a file's content under its lease, so that no change is lost",
		Long: `Change a file's content under its lease: azconc acquires the lease, reads the content, changes it, writes it back, and releases
the lease. That is the only safe way to change a file based on its content, since no operation on files accepts a condition.
Meanwhile SMB clients cannot open the file for writing; any client can read it, and may see it partly written.

If another client holds the lease, or an SMB client has the file open for writing, the exit code is 6; --wait waits for them.
A file's lease does not expire: if azconc is killed, the lease stays, and azconc file lease break --stale ends it.`,
		Example: "  azconc file update reports/state.json --jq '.n += 1' --wait 1m\n  azconc file update reports/list.txt --exec 'sort -u'",
		Flags: func(opts *updateOptions, set *pflag.FlagSet) {
			opts.Source.Add(set)
			opts.Write.add(set)
		},
		Resource: func(opts *updateOptions, arg string) (err error) { opts.File, err = ref.ParseFile(arg); return err },
		Parse: func(opts *updateOptions, in cli.Input) (err error) {
			opts.change, err = opts.Source.Parse(in.Env)
			return err
		},
		Run: updateRun,
	}
}

func updateRun(ctx context.Context, f *cli.Factory, opts *updateOptions) error {
	client, err := f.File(opts.File)
	if err != nil {
		return err
	}
	if err := change.Prepare(ctx, f, opts.change); err != nil {
		return err
	}
	r, err := files.Update(ctx, client, func(ctx context.Context, old []byte) ([]byte, error) {
		return opts.change.Apply(ctx, change.BaseContent{Resource: opts.File.String(), Exists: true, Attempt: 1, Data: old})
	}, &files.UpdateOptions{Acquire: opts.Write.Acquire(f), LeaseID: opts.Write.LeaseID, Wait: waitingFor(f, opts.Write.Wait)})
	if err != nil {
		return err
	}
	return written(f, "updated", opts.File, r)
}
