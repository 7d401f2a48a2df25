package cli

import (
	"context"
	"fmt"
	"github.com/Azure/azure-sdk-for-go/sdk/azcore/policy"
	"io"
	"net/http"

	"github.com/Azure/azure-sdk-for-go/sdk/storage/azblob/blob"
	"github.com/Azure/azure-sdk-for-go/sdk/storage/azblob/blockblob"
	"github.com/spf13/cobra"

	"github.com/azconc/azconc/optimistic"
)

func newBlobBlockCmd(f *Factory) *cobra.Command {
	return newGroupCmd("block", "Build a block blob step by step",
		newBlobBlockPutCmd(f, nil),
		newBlobBlockCommitCmd(f, nil),
		newBlobBlockListCmd(f, nil),
	)
}

// maxStaged bounds the block that azconc holds in memory; the service accepts 4,000 MiB.
const maxStaged = 256 << 20

type blobBlockPutOptions struct {
	factory *Factory
	Blob    blobRef
	ID      string
	File    string
	LeaseID string
	Sending sendingFlags
}

func newBlobBlockPutCmd(f *Factory, runF func(*blobBlockPutOptions) error) *cobra.Command {
	opts := &blobBlockPutOptions{factory: f}
	cmd := &cobra.Command{
		Use:   "put <container/blob> --id <id> --file <file>",
		Short: "Stage a block without changing the blob yet",
		Long: `Stage a block of at most 256 MiB. The blob does not change until azconc blob block commit commits the block.

The id is any text of up to 64 bytes; all ids of a blob must have the same length. Staging under an id that is already in use
replaces that block, so writers should use distinct ids. Blocks that are not committed within a week are discarded. azconc blob
put does all of this itself.`,
		Args:    resourceArgs("<container/blob>"),
		Example: "  azconc blob block put jobs/big --id part-0001 --file part1",
		RunE: func(cmd *cobra.Command, args []string) (err error) {
			if opts.Blob, err = parseWritable(args[0]); err != nil {
				return err
			}
			switch {
			case opts.ID == "":
				return usagef("--id is missing")
			case len(opts.ID) > 64:
				return usagef("--id has %d bytes: the limit is 64", len(opts.ID))
			case opts.File == "":
				return withHint(usagef("--file is missing"), "--file - reads stdin")
			}
			if err := opts.Sending.parse(cmd); err != nil {
				return err
			}
			if opts.LeaseID, err = parseLeaseID(opts.LeaseID); err != nil {
				return err
			}
			if runF != nil {
				return runF(opts)
			}
			return blobBlockPutRun(cmd.Context(), opts)
		},
	}
	cmd.Flags().StringVar(&opts.ID, "id", "", "`id` of the block")
	cmd.Flags().StringVarP(&opts.File, "file", "f", "", "`file` with the content; - is stdin")
	cmd.Flags().StringVar(&opts.LeaseID, "lease-id", "", "`id` of the lease that you hold on it")
	opts.Sending.add(cmd)
	return cmd
}

func blobBlockPutRun(ctx context.Context, opts *blobBlockPutOptions) error {
	f := opts.factory
	client, err := f.BlockBlob(opts.Blob)
	if err != nil {
		return err
	}
	data, err := f.wholeContent(ctx, opts.File, maxStaged)
	if err != nil {
		return err
	}
	if len(data) == 0 {
		return usagef("--file %s is empty: there is nothing to stage", opts.File)
	}
	r, err := optimistic.StageBlock(ctx, client, opts.ID, data, &optimistic.BlockOptions{LeaseID: opts.LeaseID, Sending: opts.Sending.sending()})
	if err != nil {
		return tally(err, r)
	}
	return f.Print(newWriteResult(opts.Blob, "staged", r))
}

type blobBlockCommitOptions struct {
	factory     *Factory
	Blob        blobRef
	IDs         []string
	ContentType string
	Metadata    map[string]string
	Tags        map[string]string
	Conditions  optimistic.Conditions
}

func newBlobBlockCommitCmd(f *Factory, runF func(*blobBlockCommitOptions) error) *cobra.Command {
	opts := &blobBlockCommitOptions{factory: f}
	var conditions conditionFlags
	var metadata, tags []string
	cmd := &cobra.Command{
		Use:   "commit <container/blob> <id>…",
		Short: "Commit blocks, in this order, as the blob's content",
		Long: `Commit blocks, in this order, as the blob's content. For each id, the block staged last is used, or else the block that is
already committed. The whole content is replaced, under the conditions given.

A missing block, one that was never staged or that another commit discarded, is a conflict (exit code 4, reason
"blocklist").`,
		Args: func(_ *cobra.Command, args []string) error {
			if len(args) < 2 {
				return resourceArgs("<container/blob>", "<id>")(nil, args)
			}
			return nil
		},
		Example: "  azconc blob block commit jobs/big part-0001 part-0002 --if-none-match '*'",
		RunE: func(cmd *cobra.Command, args []string) (err error) {
			if opts.Blob, err = parseWritable(args[0]); err != nil {
				return err
			}
			opts.IDs = args[1:]
			for _, id := range opts.IDs {
				if id == "" || len(id) > 64 || len(id) != len(opts.IDs[0]) {
					return withHint(usagef("block ids %q and %q: all must have the same length, of 1 to 64 bytes", opts.IDs[0], id), "azconc blob block list shows the existing blocks")
				}
			}
			if opts.Metadata, err = parsePairs("--metadata", metadata); err != nil {
				return err
			}
			if opts.Tags, err = parseTags(tags); err != nil {
				return err
			}
			if opts.Conditions, err = conditions.forWrite(); err != nil {
				return err
			}
			if runF != nil {
				return runF(opts)
			}
			return blobBlockCommitRun(cmd.Context(), opts)
		},
	}
	cmd.Flags().StringVar(&opts.ContentType, "content-type", "", "Content-Type of the blob (default by its name)")
	cmd.Flags().StringArrayVar(&metadata, "metadata", nil, "`name=value` to store with it; may be repeated")
	cmd.Flags().StringArrayVar(&tags, "tag", nil, "index tag `name=value`; may be repeated")
	conditions.add(cmd, condAll)
	return cmd
}

func blobBlockCommitRun(ctx context.Context, opts *blobBlockCommitOptions) error {
	f := opts.factory
	client, err := f.BlockBlob(opts.Blob)
	if err != nil {
		return err
	}
	if opts.ContentType == "" {
		opts.ContentType = contentType(opts.Blob.Blob)
	}
	r, err := optimistic.CommitBlocks(ctx, client, opts.IDs, &optimistic.UploadOptions{
		Conditions: opts.Conditions, Metadata: opts.Metadata, Tags: opts.Tags,
		HTTPHeaders: &blob.HTTPHeaders{BlobContentType: optional(opts.ContentType)},
	})
	if err != nil {
		return tally(err, r)
	}
	return f.Print(newWriteResult(opts.Blob, "committed", r))
}

type blobBlockListOptions struct {
	factory *Factory
	Blob    blobRef
	Type    string
	LeaseID string
}

func newBlobBlockListCmd(f *Factory, runF func(*blobBlockListOptions) error) *cobra.Command {
	opts := &blobBlockListOptions{factory: f}
	cmd := &cobra.Command{
		Use:     "list <container/blob>",
		Short:   "List the blocks of a blob",
		Args:    resourceArgs("<container/blob>"),
		Example: "  azconc blob block list jobs/big --type uncommitted",
		RunE: func(cmd *cobra.Command, args []string) (err error) {
			if opts.Blob, err = parseBlob(args[0]); err != nil {
				return err
			}
			switch opts.Type {
			case "all", "committed", "uncommitted":
			default:
				return usagef("--type %q is neither all, committed nor uncommitted", opts.Type)
			}
			if opts.LeaseID, err = parseLeaseID(opts.LeaseID); err != nil {
				return err
			}
			if runF != nil {
				return runF(opts)
			}
			return blobBlockListRun(cmd.Context(), opts)
		},
	}
	cmd.Flags().StringVar(&opts.Type, "type", "all", "which: {all | committed | uncommitted}")
	cmd.Flags().StringVar(&opts.LeaseID, "lease-id", "", "only if this is the `id` of the lease on it")
	return cmd
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

func (r blockListResult) text(w io.Writer) {
	for _, b := range r.Blocks {
		state := "uncommitted"
		if b.Committed {
			state = "committed"
		}
		fmt.Fprintf(w, "%-11s  %10d  %s\n", state, b.Size, b.ID)
	}
}

func blobBlockListRun(ctx context.Context, opts *blobBlockListOptions) error {
	client, err := opts.factory.BlockBlob(opts.Blob)
	if err != nil {
		return err
	}
	if opts.LeaseID != "" {
		ctx = policy.WithHTTPHeader(ctx, http.Header{"x-ms-lease-id": {opts.LeaseID}})
	}
	blocks, at, err := optimistic.ListBlocks(ctx, client, blockblob.BlockListType(opts.Type), nil)
	if err != nil {
		return err
	}
	r := blockListResult{Outcome: "listed", Blob: opts.Blob.String(), ETag: string(at.ETag), Blocks: []blockShown{}}
	for _, b := range blocks {
		r.Blocks = append(r.Blocks, blockShown(b))
	}
	return opts.factory.Print(r)
}
