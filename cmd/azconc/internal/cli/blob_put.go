package cli

import (
	"context"
	"errors"

	"github.com/spf13/cobra"

	"github.com/azconc/azconc/optimistic"
	"github.com/azconc/azconc/pkg/azerr"
)

type blobPutOptions struct {
	factory    *Factory
	Blob       blobRef
	File       string
	Headers    headerFlags
	Sending    sendingFlags
	Conditions optimistic.Conditions
	Trust      bool
}

func newBlobPutCmd(f *Factory, runF func(*blobPutOptions) error) *cobra.Command {
	opts := &blobPutOptions{factory: f}
	var conditions conditionFlags
	cmd := &cobra.Command{
		Use:   "put <container/blob> --file <file>",
		Short: "Store a file, or stdin, as a blob",
		Long: `Store a file, or stdin, as a blob.

Without a condition the last writer wins: an existing blob is replaced. --if-none-match '*' only creates (exit code 7 if
it exists), --if-match replaces one version (exit code 4 if there is another). To change an existing blob, use blob update.

An append or page blob is not replaced: delete it first.

Content above 8 MiB is sent in blocks. If another upload of the same blob is committed meanwhile, the service discards
them. A file is then sent again; stdin cannot be, so the command ends with exit code 4.`,
		Args: resourceArgs("<container/blob>"),
		Example: `  azconc blob put jobs/state.json --file state.json --if-none-match '*'
  tar c . | azconc blob put backup/src.tar --file -`,
		RunE: func(cmd *cobra.Command, args []string) (err error) {
			if opts.Blob, err = parseWritable(args[0]); err != nil {
				return err
			}
			if opts.File == "" {
				return withHint(usagef("--file is missing"), "--file - reads stdin")
			}
			if err := opts.Headers.parse(); err != nil {
				return err
			}
			if err := opts.Sending.parse(cmd); err != nil {
				return err
			}
			if opts.Conditions, err = conditions.forWrite(); err != nil {
				return err
			}
			if runF != nil {
				return runF(opts)
			}
			return blobPutRun(cmd.Context(), opts)
		},
	}
	cmd.Flags().StringVarP(&opts.File, "file", "f", "", "`file` with the content; - is stdin")
	addTrustConflicts(cmd, &opts.Trust)
	opts.Headers.add(cmd)
	opts.Sending.add(cmd)
	conditions.add(cmd, condAll)
	return cmd
}

func blobPutRun(ctx context.Context, opts *blobPutOptions) error {
	f := opts.factory
	client, err := f.BlockBlob(opts.Blob)
	if err != nil {
		return err
	}
	content, size, err := f.openContent(ctx, opts.File)
	if err != nil {
		return err
	}
	defer func() { _ = content.Close() }()
	headers := opts.Headers.headers()
	if headers.BlobContentType == nil {
		headers.BlobContentType = optional(contentType(opts.Blob.Blob))
	}
	sending := opts.Sending.sending()
	sending.TrustConflicts = opts.Trust
	p := f.progress("put " + opts.Blob.String())
	r, err := optimistic.Upload(ctx, client, content, &optimistic.UploadOptions{
		Conditions: opts.Conditions, HTTPHeaders: headers, Metadata: opts.Headers.Metadata, LookFirst: true, Sending: sending,
		Progress: func(done int64) { p.show(done, size) },
	})
	p.end()
	if err != nil {
		err = unconfirmedHint(tally(err, r))
		c, ok := errors.AsType[*optimistic.ConflictError](err)
		switch {
		case ok && c.Reason == azerr.BlockList && opts.Conditions == optimistic.Conditions{}:
			err = withHint(err, "another upload of the same blob was committed meanwhile; stdin cannot be sent again, a file given with --file can")
		case ok && c.Current != "":
			err = withHint(err, "to replace the current version, give --if-match "+shellQuote(string(c.Current)))
		}
		return err
	}
	result := newWriteResult(opts.Blob, "uploaded", r)
	if opts.Conditions.IfNoneMatch == "" {
		result.Outcome = "uploaded" // "created" is for a condition that demands it; the field says it in any case
	}
	return f.Print(result)
}
