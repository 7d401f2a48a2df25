package blob

import (
	"context"
	"errors"
	"fmt"
	"io"

	"github.com/azconc/azconc/optimistic/appends"

	"github.com/Azure/azure-sdk-for-go/sdk/storage/azblob/blob"
	"github.com/spf13/pflag"

	"github.com/azconc/azconc/cmd/azconc/internal/cli"
	"github.com/azconc/azconc/cmd/azconc/internal/cli/fail"
	"github.com/azconc/azconc/cmd/azconc/internal/cli/flags"
	"github.com/azconc/azconc/cmd/azconc/internal/cli/ref"
	"github.com/azconc/azconc/optimistic"
	"github.com/azconc/azconc/pkg/azerr"
	"github.com/azconc/azconc/pkg/ptr"
)

const maxAppend = 100 << 20

type appendOptions struct {
	Blob        ref.Blob
	File        string
	Position    int64 // -1: wherever it ends
	MaxSize     int64
	Create      bool
	ContentType string
	Record      bool
	Unique      bool
	Sending     flags.Sending
	Conditions  optimistic.Conditions
}

func appendVerb() cli.Verb[appendOptions] {
	return cli.Verb[appendOptions]{
		Use:   "append <container/blob> --file <file>",
		Short: "Append a file, or stdin, to an append blob, exactly once",
		Long: `Append a file, or stdin, of at most 100 MiB to an append blob, as one block, exactly once.

Every request is conditional on the blob ending where the block is to begin, so the block cannot be appended twice. If another
writer appends first, azconc retries at the new end; with --position that is a conflict (exit code 4, reason "position").

If a response is lost, azconc reads the bytes at the position. If they differ, another writer appended, and azconc retries at
the new end. If they are the same, another writer may have appended the same bytes, so the exit code is 5. To avoid that,
--record frames the content with an id, and --unique asserts that no other writer appends the same bytes.`,
		Example: `  echo "$(date -Is) deployed" | azconc blob append logs/deploy.log --file - --create
  azconc blob append logs/events --file event.json --record --max-size 1073741824`,
		Flags: func(opts *appendOptions, set *pflag.FlagSet) {
			flags.File(set, &opts.File, "`file` with the content; - is stdin")
			flags.Int(set, &opts.Position, "position", 0, "only if the blob ends at this `offset`")
			flags.Int(set, &opts.MaxSize, "max-size", 1, "only if the blob is then no longer than this many `bytes`")
			set.BoolVar(&opts.Create, "create", false, "create the blob if it does not exist")
			flags.Header(set, &opts.ContentType, "content-type", "Content-Type of a blob that is created")
			set.BoolVar(&opts.Record, "record", false, "frame the content with an id")
			set.BoolVar(&opts.Unique, "unique", false, "assert that no other writer appends the same bytes")
			opts.Sending.Add(set)
			flags.WriteConditions(set, &opts.Conditions, flags.CondAll)
		},
		Resource: func(opts *appendOptions, arg string) (err error) { opts.Blob, err = ref.ParseWritable(arg); return err },
		Parse: func(opts *appendOptions, in cli.Input) error {
			if !in.Flags.Changed("position") {
				opts.Position = -1
			}
			switch {
			case opts.ContentType != "" && !opts.Create:
				return fail.Usagef("--content-type applies to a blob that is created: add --create")
			case opts.Create && opts.Conditions.IfMatch != "":
				return fail.WithHint(fail.Usagef("--create and --if-match cannot both be given"), "--if-match asks for a blob that exists")
			case opts.Conditions.IfNoneMatch == "*":
				return fail.WithHint(fail.Usagef("--if-none-match '*' can never hold for an append to an existing blob"), "--create creates the blob if it does not exist")
			}
			return nil
		},
		Run: appendRun,
	}
}

type appendResult struct {
	cli.WriteResult
	Offset int64  `json:"offset"`
	End    int64  `json:"end"`
	ID     string `json:"record_id,omitempty"`
}

func (r appendResult) Text(w io.Writer) {
	fmt.Fprintf(w, "%s %s at %d, which ends at %d", r.Outcome, r.Resource, r.Offset, r.End)
	if r.ID != "" {
		fmt.Fprintf(w, ", record %s", r.ID)
	}
	fmt.Fprintln(w)
}

func appendRun(ctx context.Context, f *cli.Factory, opts *appendOptions) error {
	c, err := f.Container(opts.Blob)
	if err != nil {
		return err
	}
	data, err := f.WholeContent(ctx, opts.File, maxAppend)
	if err != nil {
		return err
	}
	if len(data) == 0 && !opts.Record {
		return fail.Usagef("--file %s is empty: there is nothing to append", opts.File)
	}
	o := &appends.AppendOptions{
		Conditions: opts.Conditions, Position: max(opts.Position, 0), Pinned: opts.Position >= 0, MaxSize: opts.MaxSize,
		Create: opts.Create, Unique: opts.Unique, SendOptions: opts.Sending.Sending(f.Monitor.Hooks()),
	}
	if opts.Create {
		o.HTTPHeaders = &blob.HTTPHeaders{BlobContentType: ptr.Optional(opts.ContentType)}
		if opts.ContentType == "" {
			o.HTTPHeaders.BlobContentType = ptr.Optional(cli.ContentType(opts.Blob.Blob))
		}
	}
	write := appends.Append
	if opts.Record {
		write = appends.AppendRecord
	}
	r, err := write(ctx, c.NewAppendBlobClient(opts.Blob.Blob), data, o)
	if err != nil {
		return appendError(fail.Tally(err, r.Result), opts)
	}
	out := cli.NewWriteResult(opts.Blob, "appended", r.Result)
	out.Outcome = "appended"
	return f.Print(appendResult{WriteResult: out, Offset: r.Offset, End: r.End, ID: r.ID})
}

func appendError(err error, opts *appendOptions) error {
	conflict, ok := errors.AsType[*optimistic.ConflictError](err)
	switch {
	case errors.Is(err, appends.ErrFull):
		return fail.WithHint(&stateError{err: err, outcome: "conflict", reason: "full"}, "start another blob")
	case errors.Is(err, appends.ErrSealed):
		return fail.WithHint(&stateError{err: err, outcome: "conflict", reason: "sealed"}, "start another blob")
	case errors.Is(err, optimistic.ErrOutcomeUnknown) && !opts.Record && !opts.Unique:
		return fail.WithHint(err, "check the end of the blob before trying again; --record lets azconc recognize its own append")
	case errors.Is(err, optimistic.ErrNotFound) && !opts.Create && azerr.Absent(err) == "":
		return fail.WithHint(err, "--create creates it")
	case ok && conflict.Reason == azerr.Position && opts.Position >= 0:
		return fail.WithHint(err, "the blob does not end there; omit --position to append at its end")
	}
	return err
}
