package cli

import (
	"context"
	"time"

	"github.com/spf13/cobra"

	"github.com/azconc/azconc/pessimistic"
)

type fileDeleteOptions struct {
	factory *Factory
	File    fileRef
	LeaseID string
	Wait    time.Duration
}

func newFileDeleteCmd(f *Factory, runF func(*fileDeleteOptions) error) *cobra.Command {
	opts := &fileDeleteOptions{factory: f}
	cmd := &cobra.Command{
		Use:   "delete <share/path>",
		Short: "Delete a file, and tell apart who has deleted it",
		Long: `Delete a file. If an SMB client has it open the exit code is 6; with --wait it is waited for, and told on stderr.

A deletion that an SMB client has begun is neither success nor absence: with --wait, it is waited for what it comes to. If it
is gone then, that is a success; if the mark is taken back, the file is left alone and the exit code is 4. The last writer
wins: what was written since you looked is deleted with it, unless you hold the lease.`,
		Args:    resourceArgs("<share/path>"),
		Example: "  azconc file delete reports/q3.csv\n  azconc file delete reports/q3.csv --wait 5m",
		RunE: func(cmd *cobra.Command, args []string) (err error) {
			if opts.File, err = parseFile(args[0]); err != nil {
				return err
			}
			if opts.LeaseID, err = parseLeaseID(opts.LeaseID); err != nil {
				return err
			}
			if opts.Wait < 0 {
				return usagef("--wait %v is negative", opts.Wait)
			}
			if runF != nil {
				return runF(opts)
			}
			return fileDeleteRun(cmd.Context(), opts)
		},
	}
	cmd.Flags().StringVar(&opts.LeaseID, "lease-id", "", "`id` under which its lease is held")
	cmd.Flags().DurationVar(&opts.Wait, "wait", 0, "wait this long for SMB clients to close it")
	return cmd
}

// waitOptions is how a verb waits for SMB clients; nil for not at all.
func (f *Factory) waitOptions(wait time.Duration) *pessimistic.WaitOptions {
	if wait == 0 {
		return nil
	}
	return &pessimistic.WaitOptions{Wait: wait, Waiting: f.waiting}
}

func fileDeleteRun(ctx context.Context, opts *fileDeleteOptions) error {
	f := opts.factory
	client, err := f.File(opts.File)
	if err != nil {
		return err
	}
	d, err := pessimistic.DeleteFile(ctx, client, &pessimistic.DeleteFileOptions{Wait: f.waitOptions(opts.Wait), LeaseID: opts.LeaseID})
	if err != nil {
		return err
	}
	return f.printFile(fileResult{Outcome: string(d.How), Resource: opts.File.String(), WaitedMS: d.Waited.Milliseconds(), Ambiguous: d.Ambiguous})
}
