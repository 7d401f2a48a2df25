package blob

import (
	"bytes"
	"context"
	"io"
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
	f      *cli.Factory
	on     ref.Blob
	change change.Change
	optimistic.UpdateOptions
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

With --exec, content of more than 1 MiB, and what the command prints, are in files of a directory below TMPDIR, which is removed at the
end. --jq and --set take documents of up to 16 MiB, which may have comments and trailing commas, and keep the form of what does not change.

--jq is gojq, which differs from jq. Members of an object have no order: keys are sorted, new members are written sorted, and there is
no keys_unsorted. Integers have any size. There is no debug, stderr, input, input_filename, input_line_number or $__loc__, and
regular expressions have no look-around and no backreferences.`,
		Example: `  azconc blob update jobs/state.json --jq '.n += 1'
  azconc blob update jobs/list.txt --create --exec 'sort -u - extra.txt'
  azconc blob update jobs/state.json --set owner=web-1 --set retries=3 --op-id deploy-42`,
	}
	set := cmd.Flags()
	u := updating{f: f}
	var source change.ChangeFlags
	var headers flags.Headers
	var maxSize int64
	source.Add(set)
	set.BoolVar(&u.Create, "create", false, "create the blob if it does not exist; the change starts from empty content")
	set.BoolVar(&u.DryRun, "dry-run", false, "print the change as a diff and write nothing")
	flags.Update(set, &u.UpdateOptions, "the content", optimistic.OperationsKept)
	headers.Add(set)
	flags.AddMaxSize(set, &maxSize)
	flags.WriteConditions(set, &u.Conditions, flags.CondAll)
	parse := cli.Checked(ref.ParseWritable, func() (err error) {
		if u.change, err = source.Parse(f.Env); err != nil {
			return err
		}
		return creates(u.Create, u.Conditions)
	})
	return cli.On(f, cmd, parse, f.BlockBlob, func(ctx context.Context, on ref.Blob, client *blockblob.Client) (cli.Result, error) {
		if err := change.Prepare(ctx, f, u.change); err != nil {
			return nil, err
		}
		u.on = on
		u.Create = u.Create || u.Conditions.IfNoneMatch == azcore.ETagAny
		u.Hooks = f.Monitor.Hooks()
		content := contentOf(client, on.Blob, headers)
		content.MaxSize = maxSize
		r, before, after, err := u.run(ctx, content)
		if err != nil {
			return nil, fail.Tally(change.CreateHint(flags.MaxSizeHint(err), &u.UpdateOptions), r)
		}
		result := cli.NewWriteResult(on, "updated", r)
		if u.DryRun {
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

// run updates content: by a command with the content in files, where files can be made, and otherwise in memory. A dry run returns
// the content before and after.
func (u *updating) run(ctx context.Context, content blobs.Blob[[]byte]) (r optimistic.Result, before, after []byte, err error) {
	if command, ok := u.change.(*change.Exec); ok && !u.DryRun {
		if dir, err := os.MkdirTemp("", "azconc-update-"); err == nil {
			defer func() { _ = os.RemoveAll(dir) }()
			r, err := u.spooled(ctx, command, content, dir)
			return r, nil, nil, err
		}
	}
	r, err = optimistic.Update(ctx, content, func(ctx context.Context, content *[]byte) (err error) {
		base := u.base(ctx)
		base.Data = *content
		changed, err := u.change.Apply(ctx, base)
		if u.DryRun { // a write needs no more than the new content
			before, after = *content, changed
		}
		*content = changed
		return err
	}, &u.UpdateOptions)
	return r, before, after, err
}

// base describes what the present run of a change begins with, without the content.
func (u *updating) base(ctx context.Context) change.BaseContent {
	base := optimistic.BaseOf(ctx)
	return change.BaseContent{Resource: u.on.String(), Exists: base.Exists, ETag: string(base.ETag), Attempt: optimistic.EarlierRuns(ctx) + 1}
}

// spooled updates content by a command, with what it reads and prints in files of a directory that only the user can read. Two files
// are there at a time at most.
func (u *updating) spooled(ctx context.Context, command *change.Exec, content blobs.Blob[[]byte], dir string) (optimistic.Result, error) {
	made := ""
	return optimistic.Update(ctx, blobs.Spooled{Blob: content, Dir: dir}, func(ctx context.Context, content *blobs.Content) (err error) {
		if made != "" { // by an earlier run
			_ = os.Remove(made)
		}
		before, size := io.NopCloser(bytes.NewReader(content.Data)), int64(len(content.Data))
		if content.Path != "" {
			if before, size, err = u.f.OpenContent(ctx, "--exec", content.Path); err != nil {
				return err
			}
		}
		defer before.Close()
		out, err := os.CreateTemp(dir, "new-")
		if err != nil {
			return err
		}
		defer out.Close()
		made = out.Name()
		if err := command.Run(ctx, u.base(ctx), before, out); err != nil {
			return err
		}
		if content.Path != "" {
			_ = os.Remove(content.Path) // another run reads the blob again
		}
		*content = blobs.Content{Path: made}
		info, err := out.Stat()
		if err != nil {
			return err
		}
		return command.Check(size, info.Size())
	}, &u.UpdateOptions)
}
