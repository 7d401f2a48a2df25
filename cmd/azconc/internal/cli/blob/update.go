package blob

import (
	"context"
	"os"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore"
	"github.com/Azure/azure-sdk-for-go/sdk/storage/azblob/blockblob"
	"github.com/spf13/pflag"

	"github.com/azconc/azconc/cmd/azconc/internal/cli"
	"github.com/azconc/azconc/cmd/azconc/internal/cli/change"
	"github.com/azconc/azconc/cmd/azconc/internal/cli/fail"
	"github.com/azconc/azconc/cmd/azconc/internal/cli/flags"
	"github.com/azconc/azconc/cmd/azconc/internal/cli/ref"
	"github.com/azconc/azconc/optimistic"
	"github.com/azconc/azconc/optimistic/blobs"
)

type updateOptions struct {
	Blob       ref.Blob
	Source     change.ChangeFlags
	Headers    flags.Headers
	Sending    flags.Sending
	MaxSize    int64
	Conditions optimistic.Conditions
	Create     bool
	DryRun     bool
	Update     flags.Update

	change change.Change
}

func updateVerb() cli.Verb[updateOptions] {
	return cli.Verb[updateOptions]{
		Use:   "update <container/blob> {--exec <command> | --jq <expression> | --set <path=value>… | --file <file>}",
		Short: "Change a blob's content exactly once, despite concurrent writers",
		Long: `Change a blob's content exactly once, despite concurrent writers.

The content is read, changed, and written back on condition that the blob has not changed; if it has, azconc starts over
from the new content. With --if-match the base must be that version and a conflict is final. A change that leaves the content
as it is writes nothing. If a response is lost, azconc determines whether the write was applied; where it cannot, the exit
code is 5.

With --exec, content of more than 1 MiB is kept in files of a directory below TMPDIR, which is removed at the end. --jq and --set
take documents of up to 16 MiB, which may have comments and trailing commas, and keep the form of what does not change.

--jq is gojq, which differs from jq. Members of an object have no order: keys are sorted, new members are written sorted, and there is
no keys_unsorted. Integers have any size. There is no debug, stderr, input, input_filename, input_line_number or $__loc__, and
regular expressions have no look-around and no backreferences.`,
		Example: `  azconc blob update jobs/state.json --jq '.n += 1'
  azconc blob update jobs/list.txt --create --exec 'sort -u - extra.txt'
  azconc blob update jobs/state.json --set owner=web-1 --set retries=3 --op-id deploy-42`,
		Flags: func(opts *updateOptions, set *pflag.FlagSet) {
			opts.Source.Add(set)
			set.BoolVar(&opts.Create, "create", false, "create the blob if it does not exist; the change starts from empty content")
			set.BoolVar(&opts.DryRun, "dry-run", false, "print the change as a diff and write nothing")
			opts.Update.Add(set, "the content", optimistic.OperationsKept)
			opts.Headers.Add(set)
			opts.Sending.Add(set)
			flags.AddMaxSize(set, &opts.MaxSize)
			flags.WriteConditions(set, &opts.Conditions, flags.CondAll)
		},
		Resource: func(opts *updateOptions, arg string) (err error) { opts.Blob, err = ref.ParseWritable(arg); return err },
		Parse: func(opts *updateOptions, in cli.Input) (err error) {
			if opts.change, err = opts.Source.Parse(in.Env); err != nil {
				return err
			}
			if opts.Create && opts.Conditions.IfMatch != "" {
				return fail.WithHint(fail.Usagef("--create and --if-match cannot both be given"), "--if-match asks for a blob that exists")
			}
			if opts.Conditions.IfNoneMatch == azcore.ETagAny {
				opts.Create = true
			}
			return nil
		},
		Run: updateRun,
	}
}

// contentOf returns the blob's content as a target, with the headers and metadata of the flags.
func contentOf(client *blockblob.Client, name string, h flags.Headers) blobs.Blob[[]byte] {
	target := blobs.NewBytes(client)
	target.Codec = blobs.BytesCodec{Type: cli.ContentType(name)}
	target.HTTPHeaders, target.Metadata = h.Headers(), h.Metadata
	return target
}

func updateRun(ctx context.Context, f *cli.Factory, opts *updateOptions) error {
	client, err := f.BlockBlob(opts.Blob)
	if err != nil {
		return err
	}
	if err := change.Prepare(ctx, f, opts.change); err != nil {
		return err
	}
	content := contentOf(client, opts.Blob.Blob, opts.Headers)
	content.MaxSize = opts.MaxSize
	update := opts.Update.Options(opts.Conditions, opts.Sending.Sending(f.Monitor.Hooks()))
	update.Create, update.DryRun = opts.Create, opts.DryRun
	var before, after []byte
	r, err := updated(ctx, opts, content, update, &before, &after)
	if err != nil {
		return change.UpdateHint(flags.UnconfirmedHint(flags.MaxSizeHint(fail.Tally(err, r))), opts.Conditions, opts.Create)
	}
	result := cli.NewWriteResult(opts.Blob, "updated", r)
	if opts.DryRun {
		result.Outcome = "dry_run"
		return change.PrintDiff(f, result, before, after)
	}
	return f.Print(result)
}

// updated runs the update: of a filter with its content in files, where files can be made, and otherwise in memory.
func updated(ctx context.Context, opts *updateOptions, content blobs.Blob[[]byte], update *optimistic.UpdateOptions, before, after *[]byte) (optimistic.Result, error) {
	if filter, ok := opts.change.(change.Filter); ok && !opts.DryRun {
		if dir, err := os.MkdirTemp("", "azconc-update-"); err == nil {
			defer func() { _ = os.RemoveAll(dir) }()
			return spooled(ctx, dir, opts, filter, content, update)
		}
	}
	return optimistic.Update(ctx, content, func(ctx context.Context, content *[]byte) (err error) {
		base := optimistic.BaseOf(ctx)
		changed, err := opts.change.Apply(ctx, change.BaseContent{
			Resource: opts.Blob.String(), Exists: base.Exists, ETag: string(base.ETag),
			Attempt: optimistic.EarlierRuns(ctx) + 1, Data: *content,
		})
		if opts.DryRun { // a write needs no more than the new content
			*before, *after = *content, changed
		}
		*content = changed
		return err
	}, update)
}
