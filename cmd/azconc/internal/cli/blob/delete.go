package blob

import (
	"context"

	"github.com/spf13/pflag"

	"github.com/azconc/azconc/cmd/azconc/internal/cli"
	"github.com/azconc/azconc/cmd/azconc/internal/cli/fail"
	"github.com/azconc/azconc/cmd/azconc/internal/cli/flags"
	"github.com/azconc/azconc/cmd/azconc/internal/cli/ref"
	"github.com/azconc/azconc/cmd/azconc/internal/cli/show"
	"github.com/azconc/azconc/optimistic"
	"github.com/azconc/azconc/optimistic/blobs"
	"github.com/azconc/azconc/pkg/azerr"
)

type deleteOptions struct {
	Blob       ref.Blob
	Snapshots  bool
	Conditions optimistic.Conditions
}

func deleteVerb() cli.Verb[deleteOptions] {
	var snapshot string
	return cli.Verb[deleteOptions]{
		Use:   "delete <container/blob>",
		Short: "Delete a blob, or a snapshot of one",
		Long: `Delete a blob, or a snapshot of one.

A deletion leaves no trace of which client requested it. If the response is lost and the blob is gone, a delete with a
condition ends with exit code 5, because another client may have deleted it; a delete without one has succeeded.`,
		Example: `  azconc blob delete jobs/state.json
  azconc blob delete jobs/ticket-7 --if-match 0x8DE0A1B2C3D4E5F`,
		Flags: func(opts *deleteOptions, set *pflag.FlagSet) {
			set.BoolVar(&opts.Snapshots, "snapshots", false, "delete its snapshots too; without it, a blob with snapshots is not deleted")
			flags.AddSnapshot(set, &snapshot, ", and not the blob")
			flags.WriteConditions(set, &opts.Conditions, flags.CondAll)
		},
		Parse: func(opts *deleteOptions, in cli.Input) (err error) {
			if opts.Blob, err = ref.ParseBlob(in.Args[0]); err != nil {
				return err
			}
			if opts.Blob, err = opts.Blob.At(snapshot); err != nil {
				return err
			}
			if opts.Snapshots && (opts.Blob.Snapshot != "" || opts.Blob.Version != "") {
				return fail.Usagef("--snapshots is for a blob: %s has none", opts.Blob)
			}
			return nil
		},
		Run: deleteRun,
	}
}

func deleteRun(ctx context.Context, f *cli.Factory, opts *deleteOptions) error {
	client, err := f.BlockBlob(opts.Blob)
	if err != nil {
		return err
	}
	if opts.Blob.Snapshot != "" {
		client, err = client.WithSnapshot(opts.Blob.Snapshot)
	} else if opts.Blob.Version != "" {
		client, err = client.WithVersionID(opts.Blob.Version)
	}
	if err != nil {
		return err
	}
	r, err := blobs.Delete(ctx, client.BlobClient(), &blobs.DeleteOptions{Conditions: opts.Conditions, Snapshots: opts.Snapshots,
		SendOptions: optimistic.SendOptions{Hooks: f.Monitor.Hooks()}})
	if azerr.HasSnapshots(err) {
		err = fail.WithHint(err, "--snapshots deletes its snapshots too; azconc blob list "+
			show.Quote(opts.Blob.Container)+" --snapshots --prefix "+show.Quote(opts.Blob.Blob)+" shows them")
	}
	if err != nil {
		return fail.Tally(err, r)
	}
	return f.Print(cli.DeleteResult{
		Outcome: "deleted", Resource: opts.Blob.String(), BaseETag: string(r.BaseETag), Ambiguous: r.Ambiguous, Resolved: r.Resolved,
		Cost: cli.Cost{Requests: int64(r.Requests), ElapsedMS: r.Elapsed.Milliseconds()},
	})
}
