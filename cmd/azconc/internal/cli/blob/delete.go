package blob

import (
	"context"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore"
	"github.com/Azure/azure-sdk-for-go/sdk/storage/azblob/blob"
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

// deletion is a target whose deletion carries all conditions, and that records whether the service confirmed it.
type deletion struct {
	blobs.Blob[[]byte]
	opts      *deleteOptions
	confirmed bool
}

func (d *deletion) Remove(base optimistic.State, c optimistic.Conditions) (optimistic.Write, error) {
	all := d.opts.Conditions
	all.IfTags, all.LeaseID = c.IfTags, c.LeaseID
	// A repetition after a lost response names the version that was found, unless other conditions depend on it.
	if base.ETag != "" && all.IfNoneMatch == "" && all.IfModifiedSince.IsZero() && all.IfUnmodifiedSince.IsZero() {
		all.IfMatch = base.ETag
	}
	o := blob.DeleteOptions{AccessConditions: flags.BlobAccess(all)}
	if d.opts.Snapshots {
		include := blob.DeleteSnapshotsOptionTypeInclude
		o.DeleteSnapshots = &include
	}
	client := d.Client.BlobClient()
	return func(ctx context.Context) (azcore.ETag, error) {
		optimistic.CountRequest(ctx)
		_, err := client.Delete(ctx, &o)
		d.confirmed = err == nil
		return "", err
	}, nil
}

func deleteRun(ctx context.Context, f *cli.Factory, opts *deleteOptions) error {
	c := opts.Conditions
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
	d := &deletion{Blob: blobs.NewBytes(client), opts: opts}
	r, err := optimistic.Delete(ctx, d, optimistic.State{ETag: c.IfMatch}, &optimistic.WriteOptions{
		Conditions: optimistic.Conditions{IfTags: c.IfTags, LeaseID: c.LeaseID},
	})
	beyond := c.IfNoneMatch != "" || c.IfMatch == azcore.ETagAny || !c.IfModifiedSince.IsZero() || !c.IfUnmodifiedSince.IsZero() || c.IfTags != ""
	if err == nil && !d.confirmed && beyond {
		err = &fail.UnknownError{Why: "the response was lost and the blob is gone: another client may have deleted it"}
	}
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
