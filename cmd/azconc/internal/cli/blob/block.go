package blob

import (
	"context"
	"fmt"
	"io"
	"net/http"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore/policy"
	"github.com/Azure/azure-sdk-for-go/sdk/storage/azblob/blob"
	"github.com/Azure/azure-sdk-for-go/sdk/storage/azblob/blockblob"
	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/azconc/azconc/cmd/azconc/internal/cli"
	"github.com/azconc/azconc/cmd/azconc/internal/cli/fail"
	"github.com/azconc/azconc/cmd/azconc/internal/cli/flags"
	"github.com/azconc/azconc/cmd/azconc/internal/cli/ref"
	"github.com/azconc/azconc/optimistic"
	"github.com/azconc/azconc/optimistic/blobs"
	"github.com/azconc/azconc/pkg/ptr"
)

func newBlockCmd(f *cli.Factory) *cobra.Command {
	return cli.NewGroupCmd("block", "Build a block blob step by step",
		blockPutVerb().Command(f),
		blockCommitVerb().Command(f),
		blockListVerb().Command(f),
	)
}

// maxStaged bounds the block that azconc holds in memory; the service accepts 4,000 MiB.
const maxStaged = 256 << 20

type blockPutOptions struct {
	Blob    ref.Blob
	ID      string
	File    string
	LeaseID string
	Sending flags.Sending
}

func blockPutVerb() cli.Verb[blockPutOptions] {
	return cli.Verb[blockPutOptions]{
		Use:   "put <container/blob> --id <id> --file <file>",
		Short: "Stage a block without changing the blob yet",
		Long: `Stage a block of at most 256 MiB. The blob does not change until azconc blob block commit commits the block.

The id is any text of up to 64 bytes; all ids of a blob must have the same length. Staging under an id that is already in use
replaces that block, so writers should use distinct ids. Blocks that are not committed within a week are discarded. azconc blob
put does all of this itself.`,
		Example: "  azconc blob block put jobs/big --id part-0001 --file part1",
		Flags: func(opts *blockPutOptions, set *pflag.FlagSet) {
			set.StringVar(&opts.ID, "id", "", "`id` of the block")
			flags.Required(set, "id", "")
			flags.File(set, &opts.File, "`file` with the content; - is stdin")
			flags.LeaseID(set, &opts.LeaseID, "`id` of the lease that you hold on it")
			opts.Sending.Add(set)
		},
		Resource: func(opts *blockPutOptions, arg string) (err error) {
			opts.Blob, err = ref.ParseWritable(arg)
			return err
		},
		Parse: func(opts *blockPutOptions, _ cli.Input) error {
			if len(opts.ID) > 64 {
				return fail.Usagef("--id has %d bytes: the limit is 64", len(opts.ID))
			}
			return nil
		},
		Run: blockPutRun,
	}
}

func blockPutRun(ctx context.Context, f *cli.Factory, opts *blockPutOptions) error {
	client, err := f.BlockBlob(opts.Blob)
	if err != nil {
		return err
	}
	data, err := f.WholeContent(ctx, opts.File, maxStaged)
	if err != nil {
		return err
	}
	if len(data) == 0 {
		return fail.Usagef("--file %s is empty: there is nothing to stage", opts.File)
	}
	r, err := blobs.StageBlock(ctx, client, opts.ID, data, &blobs.BlockOptions{LeaseID: opts.LeaseID, SendOptions: opts.Sending.Sending(f.Monitor.Hooks())})
	return f.PrintWrite(opts.Blob, "staged", r, err)
}

type blockCommitOptions struct {
	Blob        ref.Blob
	IDs         []string
	ContentType string
	Metadata    map[string]string
	Tags        map[string]string
	Conditions  optimistic.Conditions
}

func blockCommitVerb() cli.Verb[blockCommitOptions] {
	return cli.Verb[blockCommitOptions]{
		Use:   "commit <container/blob> <id>…",
		Short: "Commit blocks, in this order, as the blob's content",
		Long: `Commit blocks, in this order, as the blob's content. For each id, the block staged last is used, or else the block that is
already committed. The whole content is replaced, under the conditions given.

A missing block, one that was never staged or that another commit discarded, is a conflict (exit code 4, reason
"blocklist").`,
		Example: "  azconc blob block commit jobs/big part-0001 part-0002 --if-none-match '*'",
		Args: func(_ *cobra.Command, args []string) error {
			if len(args) < 2 {
				return cli.ResourceArgs("<container/blob>", "<id>")(nil, args)
			}
			return nil
		},
		Flags: func(opts *blockCommitOptions, set *pflag.FlagSet) {
			flags.Header(set, &opts.ContentType, "content-type", "Content-Type of the blob (default by its name)")
			flags.Metadata(set, &opts.Metadata, "`name=value` to store with it")
			flags.Pairs(set, &opts.Tags, "tag", "index tag `name=value`", parseTags)
			flags.WriteConditions(set, &opts.Conditions, flags.CondAll)
		},
		Resource: func(opts *blockCommitOptions, arg string) (err error) {
			opts.Blob, err = ref.ParseWritable(arg)
			return err
		},
		Parse: func(opts *blockCommitOptions, in cli.Input) error {
			opts.IDs = in.Args[1:]
			for _, id := range opts.IDs {
				if id == "" || len(id) > 64 || len(id) != len(opts.IDs[0]) {
					return fail.WithHint(fail.Usagef("block ids %q and %q: all must have the same length, of 1 to 64 bytes", opts.IDs[0], id), "azconc blob block list shows the existing blocks")
				}
			}
			return nil
		},
		Run: blockCommitRun,
	}
}

func blockCommitRun(ctx context.Context, f *cli.Factory, opts *blockCommitOptions) error {
	client, err := f.BlockBlob(opts.Blob)
	if err != nil {
		return err
	}
	if opts.ContentType == "" {
		opts.ContentType = cli.ContentType(opts.Blob.Blob)
	}
	r, err := blobs.CommitBlocks(ctx, client, opts.IDs, &blobs.UploadOptions{
		Conditions: opts.Conditions, Metadata: opts.Metadata, Tags: opts.Tags,
		HTTPHeaders: &blob.HTTPHeaders{BlobContentType: ptr.Optional(opts.ContentType)},
	})
	return f.PrintWrite(opts.Blob, "committed", r, err)
}

type blockListOptions struct {
	Blob    ref.Blob
	Type    string
	LeaseID string
}

func blockListVerb() cli.Verb[blockListOptions] {
	return cli.Verb[blockListOptions]{
		Use:     "list <container/blob>",
		Short:   "List the blocks of a blob",
		Example: "  azconc blob block list jobs/big --type uncommitted",
		Flags: func(opts *blockListOptions, set *pflag.FlagSet) {
			flags.OneOf(set, &opts.Type, "type", "which", "all", "committed", "uncommitted")
			flags.LeaseID(set, &opts.LeaseID, "only if this is the `id` of the lease on it")
		},
		Resource: func(opts *blockListOptions, arg string) (err error) { opts.Blob, err = ref.ParseBlob(arg); return err },
		Run:      blockListRun,
	}
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
		fmt.Fprintf(w, "%-11s  %10d  %s\n", state, b.Size, b.ID)
	}
}

func blockListRun(ctx context.Context, f *cli.Factory, opts *blockListOptions) error {
	client, err := f.BlockBlob(opts.Blob)
	if err != nil {
		return err
	}
	if opts.LeaseID != "" {
		ctx = policy.WithHTTPHeader(ctx, http.Header{"x-ms-lease-id": {opts.LeaseID}})
	}
	blocks, at, err := blobs.ListBlocks(ctx, client, blockblob.BlockListType(opts.Type), nil)
	if err != nil {
		return err
	}
	r := blockListResult{Outcome: "listed", Blob: opts.Blob.String(), ETag: string(at.ETag), Blocks: []blockShown{}}
	for _, b := range blocks {
		r.Blocks = append(r.Blocks, blockShown(b))
	}
	return f.Print(r)
}
