package blob

import (
	"cmp"
	"context"
	"errors"
	"io"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/storage/azblob/blob"
	"github.com/Azure/azure-sdk-for-go/sdk/storage/azblob/blockblob"
	"github.com/spf13/cobra"

	"github.com/azconc/azconc/cmd/azconc/internal/cli"
	"github.com/azconc/azconc/cmd/azconc/internal/cli/fail"
	"github.com/azconc/azconc/cmd/azconc/internal/cli/flags"
	"github.com/azconc/azconc/cmd/azconc/internal/cli/ref"
	"github.com/azconc/azconc/cmd/azconc/internal/cli/show"
	"github.com/azconc/azconc/optimistic"
	"github.com/azconc/azconc/optimistic/blobs"
	"github.com/azconc/azconc/pkg/azerr"
	"github.com/azconc/azconc/pkg/ptr"
	"github.com/azconc/azconc/pkg/retry"
)

func newPutCmd(f *cli.Factory) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "put <container/blob> --file <file>",
		Short: "Store a file, or stdin, as a blob",
		Long: `Store a file, or stdin, as a blob.

Without a condition the last writer wins: an existing blob is replaced. --if-none-match '*' only creates (exit code 7 if
it exists), --if-match replaces one version (exit code 4 if there is another). To change an existing blob, use blob update.

An append or page blob is not replaced: delete it first. A SAS that may write and not read will do, if it is not such a blob; after
a lost response the outcome may then be unknown (exit code 5).

Content above 8 MiB is sent in blocks. If another upload of the same blob is committed meanwhile, the service discards
them. A file is then sent again; stdin cannot be, so the command ends with exit code 4.`,
		Example: `  azconc blob put jobs/state.json --file state.json --if-none-match '*'
  tar c . | azconc blob put backup/src.tar --file -`,
	}
	set := cmd.Flags()
	var file string
	var headers flags.Headers
	var send optimistic.SendOptions
	var conditions optimistic.Conditions
	flags.File(set, &file, "`file` with the content; - is stdin")
	flags.AddConfirmConflicts(set, &send.ConfirmConflicts)
	headers.Add(set)
	flags.WriteConditions(set, &conditions, flags.CondAll)
	return cli.On(f, cmd, ref.ParseWritable, f.BlockBlob, func(ctx context.Context, on ref.Blob, client *blockblob.Client) (cli.Result, error) {
		content, size, err := f.OpenContent(ctx, "--file", file)
		if err != nil {
			return nil, err
		}
		defer func() { _ = content.Close() }()
		send.Hooks = f.Monitor.Hooks()
		p := f.Progress("put " + on.String())
		http := headers.Headers()
		http.BlobContentType = ptr.Optional(cmp.Or(headers.ContentType, cli.ContentType(on.Blob)))
		r, err := blobs.Upload(ctx, client, content, &blobs.UploadOptions{
			Conditions: conditions, HTTPHeaders: http, Metadata: headers.Metadata, LookFirst: true, SendOptions: send,
			Progress: func(done int64) { p.Show(done, size) },
		})
		p.End()
		if err != nil {
			return nil, putHint(flags.UnconfirmedHint(fail.Tally(err, r)), conditions)
		}
		result := cli.NewWriteResult(on, "uploaded", r)
		if conditions.IfNoneMatch == "" {
			result.Outcome = "uploaded" // "created" is for a condition that demands it; the field says it in any case
		}
		return result, nil
	})
}

func putHint(err error, conditions optimistic.Conditions) error {
	c, ok := errors.AsType[*optimistic.ConflictError](err)
	switch {
	case ok && c.Reason == azerr.BlockList && conditions == optimistic.Conditions{}:
		return fail.WithHint(err, "another upload of the same blob was committed meanwhile; stdin cannot be sent again, a file given with --file can")
	case ok && c.Current != "":
		return fail.WithHint(err, "to replace the current version, give --if-match "+show.Quote(string(c.Current)))
	}
	return err
}

type getResult struct {
	cli.Downloaded
	ContentType string            `json:"content_type"`
	Metadata    map[string]string `json:"metadata"`
}

func newGetCmd(f *cli.Factory) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "get <container/blob>",
		Short: "Read a blob, all of it from one version",
		Long: `Read a blob, all of it from one version, to stdout or a file.

The content is all from one version, however long the read takes: if the blob changes meanwhile, a read into a file starts
over, and a read to stdout ends with exit code 4. The file appears under its name only when it is complete.

An append blob that only grows meanwhile has not changed: it is read up to the length that it had at first, or, with --follow, until
it is sealed or azconc is interrupted.`,
		Example: `  azconc blob get jobs/state.json
  azconc blob get backup/src.tar --file src.tar`,
	}
	set := cmd.Flags()
	file := set.StringP("file", "f", "", "`file` for the content; - is stdout")
	var o blobs.DownloadOptions
	flags.Int(set, &o.Offset, "offset", 0, "begin at this `offset`")
	follow := set.Bool("follow", false, "go on with what is appended to an append blob; to stdout only")
	flags.ReadConditions(set, &o.Conditions, flags.CondAll)
	parse := cli.Checked(ref.ParseBlob, func() error {
		if *follow && *file != "" && *file != "-" {
			return fail.Usagef("--follow never completes a file: omit --file")
		}
		return f.CheckContentAlone(*file)
	})
	return cli.On(f, cmd, parse, f.Blob, func(ctx context.Context, on ref.Blob, client *blob.Client) (cli.Result, error) {
		p := f.Progress("get " + on.String())
		var got blobs.DownloadResult
		stdout, err := f.Into(*file, p, func(to io.Writer, restart func() error) (err error) {
			o.Hooks, o.Progress, o.Restart = f.Monitor.Hooks(), p.Show, restart
			got, err = blobs.Download(ctx, client, to, &o)
			for err == nil && *follow && got.Type == blob.BlobTypeAppendBlob && !got.Sealed {
				if err = retry.Sleep(ctx, time.Second); err == nil {
					o.Conditions, o.Offset = optimistic.Conditions{LeaseID: o.Conditions.LeaseID}, got.Size
					got, err = blobs.Download(ctx, client, to, &o)
				}
			}
			return err
		})
		if stdout || err != nil {
			return nil, err
		}
		return getResult{cli.Downloaded{
			Outcome: "downloaded", Resource: on.String(), File: *file, ETag: string(got.ETag), LastModified: got.LastModified.UTC(),
			Size: got.Size, Restarts: got.Restarts, Cost: f.Cost(),
		}, ptr.Value(got.Headers.BlobContentType), got.Metadata}, nil
	})
}

func newDeleteCmd(f *cli.Factory) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "delete <container/blob>",
		Short: "Delete a blob, or a snapshot of one",
		Long: `Delete a blob, or a snapshot of one.

A deletion leaves no trace of which client requested it. If the response is lost and the blob is gone, a delete with a
condition ends with exit code 5, because another client may have deleted it; a delete without one has succeeded.`,
		Example: `  azconc blob delete jobs/state.json
  azconc blob delete jobs/ticket-7 --if-match 0x8DE0A1B2C3D4E5F`,
	}
	set := cmd.Flags()
	snapshots := set.Bool("snapshots", false, "delete its snapshots too; without it, a blob with snapshots is not deleted")
	var conditions optimistic.Conditions
	flags.WriteConditions(set, &conditions, flags.CondAll)
	parse := func(arg string) (ref.Blob, error) {
		on, err := ref.ParseBlob(arg)
		if err == nil && *snapshots && (on.Snapshot != "" || on.Version != "") {
			err = fail.Usagef("--snapshots is for a blob: %s has none", on)
		}
		return on, err
	}
	return cli.On(f, cmd, parse, f.Blob, func(ctx context.Context, on ref.Blob, client *blob.Client) (cli.Result, error) {
		r, err := blobs.Delete(ctx, client, &blobs.DeleteOptions{Conditions: conditions, Snapshots: *snapshots, SendOptions: f.Sending()})
		if azerr.Has(err, "SnapshotsPresent") {
			err = fail.WithHint(err, "--snapshots deletes its snapshots too; "+listsSnapshots(on)+" shows them")
		}
		if err != nil {
			return nil, fail.Tally(err, r)
		}
		return f.DoneBy("deleted", on, r), nil
	})
}

// listsSnapshots returns the command that lists a blob's snapshots.
func listsSnapshots(on ref.Blob) string {
	return "azconc blob list " + show.Quote(on.Container) + " --snapshots --prefix " + show.Quote(on.Blob)
}
