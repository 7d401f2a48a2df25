package file

import (
	"context"
	"time"

	"github.com/spf13/pflag"

	"github.com/azconc/azconc/cmd/azconc/internal/cli"
	"github.com/azconc/azconc/cmd/azconc/internal/cli/flags"
	"github.com/azconc/azconc/cmd/azconc/internal/cli/ref"
	"github.com/azconc/azconc/pessimistic/files"
)

type deleteOptions struct {
	File    ref.File
	LeaseID string
	Wait    time.Duration
}

func deleteVerb() cli.Verb[deleteOptions] {
	return cli.Verb[deleteOptions]{
		Use:   "delete <share/path>",
		Short: "Delete a file, and detect deletions by SMB clients",
		Long: `Delete a file. If an SMB client has it open, the exit code is 6; --wait waits for the client and reports progress on stderr.

An SMB client can mark a file for deletion, which then stays until all handles are closed, unless the mark is withdrawn. --wait
waits for either: if the file is gone, the command succeeds; if the mark was withdrawn, the file is left as it is and the exit
code is 4. The last writer wins: anything written since you last looked is deleted too, unless you hold the lease.`,
		Example: "  azconc file delete reports/q3.csv\n  azconc file delete reports/q3.csv --wait 5m",
		Flags: func(opts *deleteOptions, set *pflag.FlagSet) {
			flags.LeaseID(set, &opts.LeaseID, "`id` under which its lease is held")
			flags.Duration(set, &opts.Wait, "wait", true, "wait this long for SMB clients to close it")
		},
		Resource: func(opts *deleteOptions, arg string) (err error) { opts.File, err = ref.ParseFile(arg); return err },
		Run:      deleteRun,
	}
}

// waitingFor returns how a verb waits so long for SMB clients, with its progress on stderr. It is nil if wait is 0: the verb
// does not wait.
func waitingFor(f *cli.Factory, wait time.Duration) *files.WaitOptions {
	if wait == 0 {
		return nil
	}
	return &files.WaitOptions{MaxWait: wait, Waiting: func(e files.InUseError) { waiting(f, e) }}
}

func deleteRun(ctx context.Context, f *cli.Factory, opts *deleteOptions) error {
	client, err := f.File(opts.File)
	if err != nil {
		return err
	}
	d, err := files.Delete(ctx, client, &files.DeleteOptions{Wait: waitingFor(f, opts.Wait), LeaseID: opts.LeaseID})
	if err != nil {
		return err
	}
	return printFile(f, result{Outcome: string(d.How), Resource: opts.File.String(), WaitedMS: d.Waited.Milliseconds(), Ambiguous: d.Ambiguous})
}
