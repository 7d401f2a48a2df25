package blob

import (
	"context"
	"os"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore"
	"github.com/Azure/azure-sdk-for-go/sdk/storage/azblob/blockblob"
	"github.com/spf13/cobra"

	"github.com/azconc/azconc/cmd/azconc/internal/cli"
	"github.com/azconc/azconc/cmd/azconc/internal/cli/change"
	"github.com/azconc/azconc/cmd/azconc/internal/cli/fail"
	"github.com/azconc/azconc/cmd/azconc/internal/cli/flags"
	"github.com/azconc/azconc/cmd/azconc/internal/cli/ref"
	"github.com/azconc/azconc/optimistic"
	"github.com/azconc/azconc/optimistic/blobs"
)

// updating is an update of a blob, as its flags describe it.
type updating struct {
	on         ref.Blob
	change     change.Change
	conditions optimistic.Conditions
	create     bool
	dryRun     bool
}

func newUpdateCmd(f *cli.Factory) *cobra.Command {
	cmd := &cobra.Command{
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
	}
	set := cmd.Flags()
	var u updating
	var source change.ChangeFlags
	var headers flags.Headers
	var sending flags.Sending
	var update flags.Update
	var maxSize int64
	source.Add(set)
	set.BoolVar(&u.create, "create", false, "create the blob if it does not exist; the change starts from empty content")
	set.BoolVar(&u.dryRun, "dry-run", false, "print the change as a diff and write nothing")
	update.Add(set, "the content", optimistic.OperationsKept)
	headers.Add(set)
	sending.Add(set)
	flags.AddMaxSize(set, &maxSize)
	flags.WriteConditions(set, &u.conditions, flags.CondAll)
	parse := func(arg string) (on ref.Blob, err error) {
		if u.on, err = ref.ParseWritable(arg); err != nil {
			return u.on, err
		}
		if u.change, err = source.Parse(f.Env); err != nil {
			return u.on, err
		}
		return u.on, creates(u.create, u.conditions)
	}
	return cli.On(f, cmd, parse, f.BlockBlob, func(ctx context.Context, on ref.Blob, client *blockblob.Client) (cli.Result, error) {
		if err := change.Prepare(ctx, f, u.change); err != nil {
			return nil, err
		}
		u.create = u.create || u.conditions.IfNoneMatch == azcore.ETagAny
		content := contentOf(client, on.Blob, headers)
		content.MaxSize = maxSize
		o := update.Options(u.conditions, sending.Sending(f.Monitor.Hooks()))
		o.Create, o.DryRun = u.create, u.dryRun
		r, before, after, err := u.run(ctx, content, o)
		if err != nil {
			return nil, change.UpdateHint(flags.UnconfirmedHint(flags.MaxSizeHint(fail.Tally(err, r))), u.conditions, u.create)
		}
		result := cli.NewWriteResult(on, "updated", r)
		if u.dryRun {
			result.Outcome = "dry_run"
			return nil, change.PrintDiff(f, result, before, after)
		}
		return result, nil
	})
}

// creates refuses --create for a blob that has to exist.
func creates(create bool, c optimistic.Conditions) error {
	if create && c.IfMatch != "" {
		return fail.WithHint(fail.Usagef("--create and --if-match cannot both be given"), "--if-match asks for a blob that exists")
	}
	return nil
}

// contentOf returns the blob's content as a target, with the headers and metadata of the flags.
func contentOf(client *blockblob.Client, name string, h flags.Headers) blobs.Blob[[]byte] {
	target := blobs.NewBytes(client)
	target.Codec = blobs.BytesCodec{Type: cli.ContentType(name)}
	target.HTTPHeaders, target.Metadata = h.Headers(), h.Metadata
	return target
}

// run updates content: through a filter with its content in files, where files can be made, and otherwise in memory. A dry run
// returns the content before and after.
func (u *updating) run(ctx context.Context, content blobs.Blob[[]byte], o *optimistic.UpdateOptions) (r optimistic.Result, before, after []byte, err error) {
	if filter, ok := u.change.(change.Filter); ok && !u.dryRun {
		if dir, err := os.MkdirTemp("", "azconc-update-"); err == nil {
			defer func() { _ = os.RemoveAll(dir) }()
			r, err := spooled(ctx, dir, u.on, filter, content, o)
			return r, nil, nil, err
		}
	}
	r, err = optimistic.Update(ctx, content, func(ctx context.Context, content *[]byte) (err error) {
		base := optimistic.BaseOf(ctx)
		changed, err := u.change.Apply(ctx, change.BaseContent{
			Resource: u.on.String(), Exists: base.Exists, ETag: string(base.ETag),
			Attempt: optimistic.EarlierRuns(ctx) + 1, Data: *content,
		})
		if u.dryRun { // a write needs no more than the new content
			before, after = *content, changed
		}
		*content = changed
		return err
	}, o)
	return r, before, after, err
}
