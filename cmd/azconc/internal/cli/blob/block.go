package blob

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"net/http"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore/policy"
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
	"github.com/azconc/azconc/pkg/ptr"
)

func newBlockCmd(f *cli.Factory) *cobra.Command {
	return cli.NewGroupCmd("block", "Build a block blob step by step", newBlockPutCmd(f), newBlockCommitCmd(f), newBlockListCmd(f))
}

// typed returns the headers of a new blob: its content type, or the default by its name.
func typed(contentType string, on ref.Blob) *blob.HTTPHeaders {
	return &blob.HTTPHeaders{BlobContentType: ptr.Optional(cmp.Or(contentType, cli.ContentType(on.Blob)))}
}

// maxStaged bounds the block that azconc holds in memory; the service accepts 4,000 MiB.
const maxStaged = 256 << 20

func newBlockPutCmd(f *cli.Factory) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "put <container/blob> --id <id> --file <file>",
		Short: "Stage a block without changing the blob yet",
		Long: `Stage a block of at most 256 MiB. The blob does not change until azconc blob block commit commits the block.

The id is any text of up to 64 bytes; all ids of a blob must have the same length. Staging under an id that is already in use
replaces that block, so writers should use distinct ids. Blocks that are not committed within a week are discarded. azconc blob
put does all of this itself.`,
		Example: "  azconc blob block put jobs/big --id part-0001 --file part1",
	}
	set := cmd.Flags()
	var id, file string
	var o blobs.BlockOptions
	set.StringVar(&id, "id", "", "`id` of the block")
	flags.Required(set, "id", "")
	flags.File(set, &file, "`file` with the content; - is stdin")
	flags.LeaseID(set, &o.LeaseID, "`id` of the lease that you hold on it")
	parse := cli.Checked(ref.ParseWritable, func() error {
		if id = show.Named(id); len(id) > 64 {
			return fail.Usagef("--id has %d bytes: the limit is 64", len(id))
		}
		return nil
	})
	return cli.On(f, cmd, parse, f.BlockBlob, func(ctx context.Context, on ref.Blob, client *blockblob.Client) (cli.Result, error) {
		data, err := f.WholeContent(ctx, file, maxStaged)
		if err != nil {
			return nil, err
		}
		if len(data) == 0 {
			return nil, fail.Usagef("--file %s is empty: there is nothing to stage", file)
		}
		o.Hooks = f.Monitor.Hooks()
		r, err := blobs.StageBlock(ctx, client, id, data, &o)
		return cli.Written(on, "staged", r, err)
	})
}

func newBlockCommitCmd(f *cli.Factory) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "commit <container/blob> <id>…",
		Short: "Commit blocks, in this order, as the blob's content",
		Long: `Commit blocks, in this order, as the blob's content. For each id, the block staged last is used, or else the block that is
already committed. The whole content is replaced, under the conditions given.

A missing block, one that was never staged or that another commit discarded, is a conflict (exit code 4, reason
"blocklist").`,
		Example: "  azconc blob block commit jobs/big part-0001 part-0002 --if-none-match '*'",
		Args: func(cmd *cobra.Command, args []string) error {
			return cli.ResourceArgs("<container/blob>", "<id>")(cmd, args[:min(len(args), 2)])
		},
	}
	set := cmd.Flags()
	var contentType string
	var metadata, tags map[string]string
	var conditions optimistic.Conditions
	flags.Header(set, &contentType, "content-type", "Content-Type of the blob (default by its name)")
	flags.Metadata(set, &metadata, "`name=value` to store with it")
	flags.Pairs(set, &tags, "tag", "index tag `name=value`", parseTags)
	flags.WriteConditions(set, &conditions, flags.CondAll)
	var ids []string
	parse := cli.Checked(ref.ParseWritable, func() error {
		ids = set.Args()[1:]
		for i, id := range ids {
			id = show.Named(id)
			if ids[i] = id; id == "" || len(id) > 64 || len(id) != len(ids[0]) {
				return fail.WithHint(fail.Usagef("block ids %q and %q: all must have the same length, of 1 to 64 bytes", ids[0], id), "azconc blob block list shows the existing blocks")
			}
		}
		return nil
	})
	return cli.On(f, cmd, parse, f.BlockBlob, func(ctx context.Context, on ref.Blob, client *blockblob.Client) (cli.Result, error) {
		r, err := blobs.CommitBlocks(ctx, client, ids, &blobs.UploadOptions{
			Conditions: conditions, Metadata: metadata, Tags: tags, HTTPHeaders: typed(contentType, on), SendOptions: f.Sending(),
		})
		return cli.Written(on, "committed", r, err)
	})
}

type blockListResult struct {
	Outcome string       `json:"outcome"`
	Blob    string       `json:"resource"`
	ETag    string       `json:"etag"`
	Blocks  []blockShown `json:"blocks"`
}

type blockShown struct {
	ID        string `json:"id"`
	Size      int64  `json:"size"`
	Committed bool   `json:"committed"`
}

func (r blockListResult) Text(w io.Writer) {
	for _, b := range r.Blocks {
		state := "uncommitted"
		if b.Committed {
			state = "committed"
		}
		fmt.Fprintf(w, "%-11s  %10d  %s\n", state, b.Size, show.Name(b.ID))
	}
}

func newBlockListCmd(f *cli.Factory) *cobra.Command {
	cmd := &cobra.Command{
		Use:     "list <container/blob>",
		Short:   "List the blocks of a blob",
		Example: "  azconc blob block list jobs/big --type uncommitted",
	}
	var which, leaseID string
	flags.OneOf(cmd.Flags(), &which, "type", "which", "all", "committed", "uncommitted")
	flags.LeaseID(cmd.Flags(), &leaseID, "only if this is the `id` of the lease on it")
	return cli.On(f, cmd, ref.ParseBlob, f.BlockBlob, func(ctx context.Context, on ref.Blob, client *blockblob.Client) (cli.Result, error) {
		if leaseID != "" {
			ctx = policy.WithHTTPHeader(ctx, http.Header{"x-ms-lease-id": {leaseID}})
		}
		blocks, at, err := blobs.ListBlocks(ctx, client, blockblob.BlockListType(which), &optimistic.ReadOptions{SendOptions: f.Sending()})
		r := blockListResult{Outcome: "listed", Blob: on.String(), ETag: string(at.ETag), Blocks: []blockShown{}}
		for _, b := range blocks {
			r.Blocks = append(r.Blocks, blockShown(b))
		}
		return r, err
	})
}
