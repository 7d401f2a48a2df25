package cli

import (
	"cmp"
	"context"
	"errors"
	"unicode/utf8"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore"
	"github.com/Azure/azure-sdk-for-go/sdk/storage/azblob/blockblob"
	"github.com/aymanbagabas/go-udiff"
	"github.com/spf13/cobra"

	"github.com/azconc/azconc/optimistic"
	"github.com/azconc/azconc/pkg/azerr"
)

type blobUpdateOptions struct {
	factory     *Factory
	Blob        blobRef
	Source      changeFlags
	Headers     headerFlags
	Sending     sendingFlags
	MaxSize     int64
	Conditions  optimistic.Conditions
	Create      bool
	DryRun      bool
	OperationID string
	MaxAttempts int
	Trust       bool

	change change
}

func newBlobUpdateCmd(f *Factory, runF func(*blobUpdateOptions) error) *cobra.Command {
	opts := &blobUpdateOptions{factory: f}
	var conditions conditionFlags
	cmd := &cobra.Command{
		Use:   "update <container/blob> {--exec <command> | --jq <expression> | --set <path=value>… | --file <file>}",
		Short: "Change a blob's content exactly once, despite concurrent writers",
		Long: `Change a blob's content exactly once, despite concurrent writers.

The content is read, changed, and written back on condition that the blob has not changed; if it has, azconc starts over
from the new content. With --if-match the base must be that version and a conflict is final. A change that leaves the content
as it is writes nothing. If a response is lost, azconc determines whether the write was applied; where it cannot, the exit
code is 5.`,
		Args: resourceArgs("<container/blob>"),
		Example: `  azconc blob update jobs/state.json --jq '.n += 1'
  azconc blob update jobs/list.txt --create --exec 'sort -u - extra.txt'
  azconc blob update jobs/state.json --set owner=web-1 --set retries=3 --op-id deploy-42`,
		RunE: func(cmd *cobra.Command, args []string) (err error) {
			if opts.Blob, err = parseWritable(args[0]); err != nil {
				return err
			}
			if opts.change, err = opts.Source.parse(f.Env); err != nil {
				return err
			}
			if err := opts.Headers.parse(); err != nil {
				return err
			}
			if err := cmp.Or(opts.Sending.parse(cmd), checkMaxSize(opts.MaxSize)); err != nil {
				return err
			}
			if opts.Conditions, err = conditions.forWrite(); err != nil {
				return err
			}
			switch {
			case opts.Create && opts.Conditions.IfMatch != "":
				return withHint(usagef("--create and --if-match cannot both be given"), "--if-match asks for a blob that exists")
			case opts.MaxAttempts < 0 || cmd.Flags().Changed("max-attempts") && opts.MaxAttempts == 0:
				return usagef("--max-attempts %d is not positive", opts.MaxAttempts)
			}
			if opts.Conditions.IfNoneMatch == azcore.ETagAny {
				opts.Create = true
			}
			if runF != nil {
				return runF(opts)
			}
			return blobUpdateRun(cmd.Context(), opts)
		},
	}
	opts.Source.add(cmd)
	flags := cmd.Flags()
	flags.BoolVar(&opts.Create, "create", false, "create the blob if it does not exist; the change starts from empty content")
	flags.BoolVar(&opts.DryRun, "dry-run", false, "print the change as a diff and write nothing")
	addOperationID(cmd, &opts.OperationID, "the content", optimistic.OperationsKept)
	flags.IntVar(&opts.MaxAttempts, "max-attempts", 0, "give up after this many conflicts (default 12, or 30s)")
	addTrustConflicts(cmd, &opts.Trust)
	opts.Headers.add(cmd)
	opts.Sending.add(cmd)
	addMaxSize(cmd, &opts.MaxSize)
	conditions.add(cmd, condAll)
	return cmd
}

// typedBytes is content as it is, of a type for the case that it is new.
type typedBytes struct {
	optimistic.Bytes
	contentType string
}

func (t typedBytes) ContentType() string { return t.contentType }

// contentOf is the blob's content as a target, with what the flags set on top.
func contentOf(client *blockblob.Client, name string, h headerFlags) optimistic.Blob[[]byte] {
	target := optimistic.BytesBlob(client)
	target.Codec = typedBytes{contentType: contentType(name)}
	target.HTTPHeaders, target.Metadata = h.headers(), h.Metadata
	return target
}

func blobUpdateRun(ctx context.Context, opts *blobUpdateOptions) error {
	f := opts.factory
	client, err := f.BlockBlob(opts.Blob)
	if err != nil {
		return err
	}
	if err := prepare(ctx, f, opts.change); err != nil {
		return err
	}
	content := contentOf(client, opts.Blob.Blob, opts.Headers)
	content.MaxSize = opts.MaxSize
	target := &guarded[[]byte]{Target: content, op: "update", conditions: opts.Conditions}
	update := &optimistic.UpdateOptions{
		Conditions: carried(opts.Conditions), OperationID: opts.OperationID, Create: opts.Create, DryRun: opts.DryRun, Attempts: opts.MaxAttempts, Sending: opts.Sending.sending(),
	}
	if opts.MaxAttempts > 0 {
		update.Elapsed = -1
	}
	update.TrustConflicts = opts.Trust
	var before, after []byte
	r, err := optimistic.Update(ctx, target, func(ctx context.Context, content *[]byte) (err error) {
		before = *content
		after, err = opts.change.apply(ctx, baseContent{
			Resource: opts.Blob.String(), Exists: target.seen.Exists, ETag: string(target.seen.ETag),
			Attempt: optimistic.Attempt(ctx) + 1, Data: before,
		})
		*content = after
		return err
	}, update)
	if err != nil {
		return updateHint(unconfirmedHint(maxSizeHint(tally(err, r))), opts.Conditions, opts.Create)
	}
	result := newWriteResult(opts.Blob, "updated", r)
	if opts.DryRun {
		result.Outcome = "dry_run"
		return printDiff(f, result, before, after)
	}
	return f.Print(result)
}

// updateHint adds the way out of an update that could not be made.
func updateHint(err error, c optimistic.Conditions, created bool) error {
	conflict, ok := errors.AsType[*optimistic.ConflictError](err)
	switch {
	case errors.Is(err, optimistic.ErrNotFound) && !created && c.IfMatch == "" && !azerr.Has(err, "ContainerNotFound"):
		return withHint(err, "--create creates it")
	case !ok || errors.Is(err, optimistic.ErrExists):
		return err
	case c.IfMatch != "" && conflict.Current != "":
		return withHint(err, "read the current version and give its ETag, or omit --if-match to change whichever version is current")
	case conflict.Attempts > 1:
		return withHint(err, "it has many writers: try again, or give a larger --max-attempts")
	}
	return err
}

// printDiff prints a dry run. The diff is content, so it goes out as it is.
func printDiff(f *Factory, r writeResult, before, after []byte) error {
	from, to := "a/"+r.Resource, "b/"+r.Resource
	if r.Created {
		from = "/dev/null"
	}
	switch {
	case !utf8.Valid(before) || !utf8.Valid(after):
		if string(before) != string(after) {
			r.Diff = "binary content of " + r.Resource + " differs\n"
		}
	default:
		r.Diff = udiff.Unified(from, to, string(before), string(after))
	}
	if f.JSON() {
		return f.Print(r)
	}
	_, err := f.Content().Write([]byte(r.Diff))
	return err
}
