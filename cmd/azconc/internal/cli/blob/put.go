package blob

import (
	"context"
	"errors"

	"github.com/spf13/pflag"

	"github.com/azconc/azconc/cmd/azconc/internal/cli"
	"github.com/azconc/azconc/cmd/azconc/internal/cli/fail"
	"github.com/azconc/azconc/cmd/azconc/internal/cli/flags"
	"github.com/azconc/azconc/cmd/azconc/internal/cli/ref"
	"github.com/azconc/azconc/cmd/azconc/internal/cli/show"
	"github.com/azconc/azconc/optimistic"
	"github.com/azconc/azconc/optimistic/blobs"
	"github.com/azconc/azconc/pkg/azerr"
	"github.com/azconc/azconc/pkg/ptr"
)

type putOptions struct {
	Blob       ref.Blob
	File       string
	Headers    flags.Headers
	Sending    flags.Sending
	Conditions optimistic.Conditions
	Confirm    optimistic.Confirm
}

func putVerb() cli.Verb[putOptions] {
	return cli.Verb[putOptions]{
		Use:   "put <container/blob> --file <file>",
		Short: "Store a file, or stdin, as a blob",
		Long: `Store a file, or stdin, as a blob.

Without a condition the last writer wins: an existing blob is replaced. --if-none-match '*' only creates (exit code 7 if
it exists), --if-match replaces one version (exit code 4 if there is another). To change an existing blob, use blob update.

An append or page blob is not replaced: delete it first.

Content above 8 MiB is sent in blocks. If another upload of the same blob is committed meanwhile, the service discards
them. A file is then sent again; stdin cannot be, so the command ends with exit code 4.`,
		Example: `  azconc blob put jobs/state.json --file state.json --if-none-match '*'
  tar c . | azconc blob put backup/src.tar --file -`,
		Flags: func(opts *putOptions, set *pflag.FlagSet) {
			flags.File(set, &opts.File, "`file` with the content; - is stdin")
			flags.AddConfirmConflicts(set, &opts.Confirm)
			opts.Headers.Add(set)
			opts.Sending.Add(set)
			flags.WriteConditions(set, &opts.Conditions, flags.CondAll)
		},
		Resource: func(opts *putOptions, arg string) (err error) { opts.Blob, err = ref.ParseWritable(arg); return err },
		Run:      putRun,
	}
}

func putRun(ctx context.Context, f *cli.Factory, opts *putOptions) error {
	client, err := f.BlockBlob(opts.Blob)
	if err != nil {
		return err
	}
	content, size, err := f.OpenContent(ctx, opts.File)
	if err != nil {
		return err
	}
	defer func() { _ = content.Close() }()
	headers := opts.Headers.Headers()
	if headers.BlobContentType == nil {
		headers.BlobContentType = ptr.Optional(cli.ContentType(opts.Blob.Blob))
	}
	sending := opts.Sending.Sending(f.Monitor.Hooks())
	sending.ConfirmConflicts = opts.Confirm
	p := f.Progress("put " + opts.Blob.String())
	r, err := blobs.Upload(ctx, client, content, &blobs.UploadOptions{
		Conditions: opts.Conditions, HTTPHeaders: headers, Metadata: opts.Headers.Metadata, LookFirst: true, SendOptions: sending,
		Progress: func(done int64) { p.Show(done, size) },
	})
	p.End()
	if err != nil {
		err = flags.UnconfirmedHint(fail.Tally(err, r))
		c, ok := errors.AsType[*optimistic.ConflictError](err)
		switch {
		case ok && c.Reason == azerr.BlockList && opts.Conditions == optimistic.Conditions{}:
			err = fail.WithHint(err, "another upload of the same blob was committed meanwhile; stdin cannot be sent again, a file given with --file can")
		case ok && c.Current != "":
			err = fail.WithHint(err, "to replace the current version, give --if-match "+show.Quote(string(c.Current)))
		}
		return err
	}
	result := cli.NewWriteResult(opts.Blob, "uploaded", r)
	if opts.Conditions.IfNoneMatch == "" {
		result.Outcome = "uploaded" // "created" is for a condition that demands it; the field says it in any case
	}
	return f.Print(result)
}
