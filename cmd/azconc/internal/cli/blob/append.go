package blob

import (
	"context"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/storage/azblob/container"
	"github.com/spf13/cobra"

	"github.com/azconc/azconc/cmd/azconc/internal/cli"
	"github.com/azconc/azconc/cmd/azconc/internal/cli/fail"
	"github.com/azconc/azconc/cmd/azconc/internal/cli/flags"
	"github.com/azconc/azconc/cmd/azconc/internal/cli/ref"
	"github.com/azconc/azconc/optimistic"
	"github.com/azconc/azconc/optimistic/appends"
	"github.com/azconc/azconc/pkg/azerr"
)

const maxAppend = 100 << 20

type appendResult struct {
	cli.WriteResult
	Offset int64  `json:"offset"`
	End    int64  `json:"end"`
	ID     string `json:"record_id,omitempty"`

	// Of a record of a log.
	Position *appends.Position `json:"position,omitempty"`
	Next     *appends.Position `json:"next,omitempty"`
}

func (r appendResult) Text(w io.Writer) {
	if r.Position != nil {
		fmt.Fprintf(w, "%s %s at %s, which goes on at %s", r.Outcome, r.Resource, r.Position, r.Next)
	} else {
		fmt.Fprintf(w, "%s %s at %d, which ends at %d", r.Outcome, r.Resource, r.Offset, r.End)
	}
	if r.ID != "" {
		fmt.Fprintf(w, ", record %s", r.ID)
	}
	fmt.Fprintln(w)
}

func newAppendCmd(f *cli.Factory) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "append <container/blob> --file <file>",
		Short: "Append a file, or stdin, to an append blob, exactly once",
		Long: `Append a file, or stdin, of at most 100 MiB to an append blob, as one block, exactly once.

Every request is conditional on the blob ending where the block is to begin, so the block cannot be appended twice. If another
writer appends first, azconc retries at the new end; with --position that is a conflict (exit code 4, reason "position").

If a response is lost, azconc reads the bytes at the position. If they differ, another writer appended, and azconc retries at
the new end. If they are the same, another writer may have appended the same bytes, so the exit code is 5. To avoid that,
--record frames the content with an id, and --unique asserts that no other writer appends the same bytes.

With a SAS that may append and not read, the block is sent once, without that condition: after a lost response the exit code is 5.

An append blob takes 50,000 blocks. With --roll, the name is that of a log, which has its records in the append blobs <name>/000001,
<name>/000002 and so on. A record begins the next if it would make the last longer than --max-size, or if that is older than
--max-age or full. Any number of writers may do so. azconc blob records reads the log.`,
		Example: `  echo "$(date -Is) deployed" | azconc blob append logs/deploy.log --file - --create
  azconc blob append logs/events --file event.json --record --max-size 1GiB
  azconc blob append logs/app --roll --max-size 1GiB --max-age 1d --record --file event.json`,
	}
	set := cmd.Flags()
	var file, contentType string
	var record, roll bool
	var maxAge time.Duration
	var o appends.AppendOptions
	flags.File(set, &file, "`file` with the content; - is stdin")
	flags.Int(set, &o.Position, "position", 0, "only if the blob ends at this `offset`")
	flags.Size(set, &o.MaxSize, "max-size", "only if the blob is then no longer than this many `bytes`, such as 1GiB")
	set.BoolVar(&roll, "roll", false, "append a record to a log, which goes on in another blob")
	flags.Duration(set, &maxAge, "max-age", false, "of a blob of a log that gets more records")
	set.BoolVar(&o.Create, "create", false, "create the blob if it does not exist")
	flags.Header(set, &contentType, "content-type", "Content-Type of a blob that is created")
	set.BoolVar(&record, "record", false, "frame the content with an id")
	set.BoolVar(&o.Unique, "unique", false, "assert that no other writer appends the same bytes")
	flags.WriteConditions(set, &o.Conditions, flags.CondAll)
	parse := cli.Checked(ref.ParseWritable, func() error {
		o.Pinned = set.Changed("position")
		alone := flags.GivenConditions(set)
		for _, name := range []string{"position", "create", "unique", "lease-id"} {
			if set.Changed(name) {
				alone = append(alone, "--"+name)
			}
		}
		switch {
		case maxAge != 0 && !roll:
			return fail.Usagef("--max-age is for the blobs of a log: add --roll")
		case roll && !record:
			return fail.Usagef("a log has records: add --record to --roll")
		case roll && len(alone) > 0:
			return fail.Usagef("%s is for a single blob, and --roll chooses the blob itself", alone[0])
		case roll:
			return nil
		case contentType != "" && !o.Create:
			return fail.Usagef("--content-type applies to a blob that is created: add --create")
		case o.Conditions.IfNoneMatch == "*":
			return fail.WithHint(fail.Usagef("--if-none-match '*' can never hold for an append to an existing blob"), "--create creates the blob if it does not exist")
		}
		return creates(o.Create, o.Conditions)
	})
	return cli.On(f, cmd, parse, f.Container, func(ctx context.Context, on ref.Blob, client *container.Client) (cli.Result, error) {
		data, err := f.WholeContent(ctx, file, maxAppend)
		if err != nil {
			return nil, err
		}
		if len(data) == 0 && !record {
			return nil, fail.Usagef("--file %s is empty: there is nothing to append", file)
		}
		o.Hooks = f.Monitor.Hooks()
		if roll {
			return appendToLog(ctx, on, client, data, &appends.LogOptions{MaxSize: o.MaxSize, MaxAge: maxAge, HTTPHeaders: typed(contentType, on), SendOptions: o.SendOptions})
		}
		if o.Create {
			o.HTTPHeaders = typed(contentType, on)
		}
		write := appends.Append
		if record {
			write = appends.AppendRecord
		}
		r, err := write(ctx, client.NewAppendBlobClient(on.Blob), data, &o)
		if err != nil {
			return nil, appendHint(fail.Tally(err, r.Result), o, record)
		}
		out := cli.NewWriteResult(on, "appended", r.Result)
		out.Outcome = "appended"
		return appendResult{WriteResult: out, Offset: r.Offset, End: r.End, ID: r.ID}, nil
	})
}

func appendToLog(ctx context.Context, on ref.Blob, client *container.Client, data []byte, o *appends.LogOptions) (cli.Result, error) {
	log, err := appends.NewLog(client, on.Blob, o)
	if err != nil {
		return nil, fail.Usagef("%v", err)
	}
	r, err := log.Append(ctx, data)
	switch {
	case err != nil && r.Requests == 0 && ctx.Err() == nil: // a record that no blob of the log can have
		return nil, fail.Usagef("%v", err)
	case err != nil:
		return nil, fail.Tally(err, r.Result)
	}
	out := appendResult{cli.NewWriteResult(on, "appended", r.Result), r.Position.Offset, r.Next.Offset, r.ID, &r.Position, &r.Next}
	out.Outcome = "appended"
	return out, nil
}

func appendHint(err error, o appends.AppendOptions, record bool) error {
	conflict, ok := errors.AsType[*optimistic.ConflictError](err)
	switch {
	case errors.Is(err, appends.ErrFull):
		return fail.WithHint(fail.Conflicting(err, "full"), "start another blob, or a log, which does so itself: --roll")
	case errors.Is(err, appends.ErrSealed):
		return fail.WithHint(fail.Conflicting(err, "sealed"), "start another blob, or a log, which does so itself: --roll")
	case errors.Is(err, optimistic.ErrOutcomeUnknown) && !record && !o.Unique:
		return fail.WithHint(err, "check the end of the blob before trying again; --record lets azconc recognize its own append")
	case errors.Is(err, optimistic.ErrNotFound) && !o.Create && azerr.Absent(err) == "":
		return fail.WithHint(err, "--create creates it")
	case ok && conflict.Reason == azerr.Position && o.Pinned:
		return fail.WithHint(err, "the blob does not end there; omit --position to append at its end")
	}
	return err
}
