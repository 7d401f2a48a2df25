package cli

import (
	"context"
	"errors"
	"fmt"
	"io"

	"github.com/Azure/azure-sdk-for-go/sdk/storage/azblob/blob"
	"github.com/spf13/cobra"

	"github.com/azconc/azconc/optimistic"
	"github.com/azconc/azconc/pkg/azerr"
)

const maxAppend = 100 << 20

type blobAppendOptions struct {
	factory     *Factory
	Blob        blobRef
	File        string
	Position    int64 // -1: wherever it ends
	MaxSize     int64
	Create      bool
	ContentType string
	Record      bool
	Unique      bool
	Sending     sendingFlags
	Conditions  optimistic.Conditions
}

func newBlobAppendCmd(f *Factory, runF func(*blobAppendOptions) error) *cobra.Command {
	opts := &blobAppendOptions{factory: f}
	var conditions conditionFlags
	cmd := &cobra.Command{
		Use:   "append <container/blob> --file <file>",
		Short: "Append a file, or stdin, to an append blob, exactly once",
		Long: `Append a file, or stdin, of at most 100 MiB to an append blob, as one block, exactly once.

Every request is conditional on the blob ending where the block is to begin, so the block cannot be appended twice. If another
writer appends first, azconc retries at the new end; with --position that is a conflict (exit code 4, reason "position").

If a response is lost, azconc reads the bytes at the position. If they differ, another writer appended, and azconc retries at
the new end. If they are the same, another writer may have appended the same bytes, so the exit code is 5. To avoid that,
--record frames the content with an id, and --unique asserts that no other writer appends the same bytes.`,
		Args: resourceArgs("<container/blob>"),
		Example: `  echo "$(date -Is) deployed" | azconc blob append logs/deploy.log --file - --create
  azconc blob append logs/events --file event.json --record --max-size 1073741824`,
		RunE: func(cmd *cobra.Command, args []string) (err error) {
			if opts.Blob, err = parseWritable(args[0]); err != nil {
				return err
			}
			flags := cmd.Flags()
			switch {
			case opts.File == "":
				return withHint(usagef("--file is missing"), "--file - reads stdin")
			case !flags.Changed("position"):
				opts.Position = -1
			case opts.Position < 0:
				return usagef("--position %d is negative", opts.Position)
			}
			if opts.MaxSize < 0 || flags.Changed("max-size") && opts.MaxSize == 0 {
				return usagef("--max-size %d is not positive", opts.MaxSize)
			}
			if opts.ContentType != "" && !opts.Create {
				return usagef("--content-type applies to a blob that is created: add --create")
			}
			if err := opts.Sending.parse(cmd); err != nil {
				return err
			}
			if opts.Conditions, err = conditions.forWrite(); err != nil {
				return err
			}
			if opts.Create && opts.Conditions.IfMatch != "" {
				return withHint(usagef("--create and --if-match cannot both be given"), "--if-match asks for a blob that exists")
			}
			if opts.Conditions.IfNoneMatch == "*" {
				return withHint(usagef("--if-none-match '*' can never hold for an append to an existing blob"), "--create creates the blob if it does not exist")
			}
			if runF != nil {
				return runF(opts)
			}
			return blobAppendRun(cmd.Context(), opts)
		},
	}
	flags := cmd.Flags()
	flags.StringVarP(&opts.File, "file", "f", "", "`file` with the content; - is stdin")
	flags.Int64Var(&opts.Position, "position", 0, "only if the blob ends at this `offset`")
	flags.Int64Var(&opts.MaxSize, "max-size", 0, "only if the blob is then no longer than this many `bytes`")
	flags.BoolVar(&opts.Create, "create", false, "create the blob if it does not exist")
	flags.StringVar(&opts.ContentType, "content-type", "", "Content-Type of a blob that is created")
	flags.BoolVar(&opts.Record, "record", false, "frame the content with an id")
	flags.BoolVar(&opts.Unique, "unique", false, "assert that no other writer appends the same bytes")
	opts.Sending.add(cmd)
	conditions.add(cmd, condAll)
	return cmd
}

type appendResult struct {
	writeResult
	Offset int64  `json:"offset"`
	End    int64  `json:"end"`
	ID     string `json:"record_id,omitempty"`
}

func (r appendResult) text(w io.Writer) {
	fmt.Fprintf(w, "%s %s at %d, which ends at %d", r.Outcome, r.Resource, r.Offset, r.End)
	if r.ID != "" {
		fmt.Fprintf(w, ", record %s", r.ID)
	}
	fmt.Fprintln(w)
}

func blobAppendRun(ctx context.Context, opts *blobAppendOptions) error {
	f := opts.factory
	c, err := f.Container(opts.Blob)
	if err != nil {
		return err
	}
	data, err := f.wholeContent(ctx, opts.File, maxAppend)
	if err != nil {
		return err
	}
	if len(data) == 0 && !opts.Record {
		return usagef("--file %s is empty: there is nothing to append", opts.File)
	}
	o := &optimistic.AppendOptions{
		Conditions: opts.Conditions, Position: max(opts.Position, 0), Pinned: opts.Position >= 0, MaxSize: opts.MaxSize,
		Create: opts.Create, Unique: opts.Unique, Sending: opts.Sending.sending(),
	}
	if opts.Create {
		o.HTTPHeaders = &blob.HTTPHeaders{BlobContentType: optional(opts.ContentType)}
		if opts.ContentType == "" {
			o.HTTPHeaders.BlobContentType = optional(contentType(opts.Blob.Blob))
		}
	}
	write := optimistic.Append
	if opts.Record {
		write = optimistic.AppendRecord
	}
	r, err := write(ctx, c.NewAppendBlobClient(opts.Blob.Blob), data, o)
	if err != nil {
		return appendError(tally(err, r.Result), opts)
	}
	out := newWriteResult(opts.Blob, "appended", r.Result)
	out.Outcome = "appended"
	return f.Print(appendResult{writeResult: out, Offset: r.Offset, End: r.End, ID: r.ID})
}

func appendError(err error, opts *blobAppendOptions) error {
	conflict, ok := errors.AsType[*optimistic.ConflictError](err)
	switch {
	case errors.Is(err, optimistic.ErrFull):
		return withHint(&stateError{err: err, outcome: "conflict", reason: "full"}, "start another blob")
	case errors.Is(err, optimistic.ErrSealed):
		return withHint(&stateError{err: err, outcome: "conflict", reason: "sealed"}, "start another blob")
	case errors.Is(err, optimistic.ErrOutcomeUnknown) && !opts.Record && !opts.Unique:
		return withHint(err, "check the end of the blob before trying again; --record lets azconc recognize its own append")
	case errors.Is(err, optimistic.ErrNotFound) && !opts.Create && !azerr.Has(err, "ContainerNotFound"):
		return withHint(err, "--create creates it")
	case ok && conflict.Reason == azerr.Position && opts.Position >= 0:
		return withHint(err, "the blob does not end there; omit --position to append at its end")
	}
	return err
}
