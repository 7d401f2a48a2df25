package blob

import (
	"context"
	"fmt"
	"io"

	"github.com/Azure/azure-sdk-for-go/sdk/storage/azblob/pageblob"
	"github.com/spf13/cobra"

	"github.com/azconc/azconc/cmd/azconc/internal/cli"
	"github.com/azconc/azconc/cmd/azconc/internal/cli/fail"
	"github.com/azconc/azconc/cmd/azconc/internal/cli/flags"
	"github.com/azconc/azconc/cmd/azconc/internal/cli/ref"
	"github.com/azconc/azconc/optimistic"
	"github.com/azconc/azconc/optimistic/pages"
	"github.com/azconc/azconc/pkg/ptr"
)

func newPageCmd(f *cli.Factory) *cobra.Command {
	return cli.NewGroupCmd("page", "Create page blobs, and write and clear their pages",
		newPageCreateCmd(f), newPagePutCmd(f), newPageClearCmd(f), newPageRangesCmd(f),
	)
}

// pageBlob returns what opens a page blob.
func pageBlob(f *cli.Factory) func(ref.Blob) (*pageblob.Client, error) {
	return func(on ref.Blob) (*pageblob.Client, error) {
		c, err := f.Container(on)
		if err != nil {
			return nil, err
		}
		return c.NewPageBlobClient(on.Blob), nil
	}
}

// wholePages refuses bytes that are fewer than least or end inside a page. what names them; multiple is "multiple", or "positive multiple".
func wholePages(what, multiple string, bytes, least int64) error {
	if bytes < least || bytes%pages.PageSize != 0 {
		return fail.WithHint(fail.Usagef("%s is not a %s of %d", what, multiple, pages.PageSize), "pages have 512 bytes")
	}
	return nil
}

func newPageCreateCmd(f *cli.Factory) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "create <container/blob> --size <bytes>",
		Short: "Create a page blob of zeros, or replace an existing blob",
		Long: `Create a page blob of zeros. An existing blob is replaced unless a condition forbids it; with --if-none-match '*' the blob
must not exist.`,
		Example: "  azconc blob page create jobs/disk --size 1048576 --if-none-match '*'",
	}
	set := cmd.Flags()
	var contentType string
	var o pages.CreateOptions
	size := set.Int64("size", 0, "length in `bytes`, a multiple of 512")
	flags.Required(set, "size", "")
	flags.Int(set, &o.SequenceNumber, "sequence", 0, "sequence `number` to begin with")
	flags.Header(set, &contentType, "content-type", "Content-Type of the blob (default by its name)")
	flags.Metadata(set, &o.Metadata, "`name=value` to store with it")
	flags.WriteConditions(set, &o.Conditions, flags.CondAll)
	parse := cli.Checked(ref.ParseWritable, func() error {
		return wholePages(fmt.Sprintf("--size %d", *size), "multiple", *size, 0)
	})
	return cli.On(f, cmd, parse, pageBlob(f), func(ctx context.Context, on ref.Blob, client *pageblob.Client) (cli.Result, error) {
		o.HTTPHeaders, o.SendOptions = typed(contentType, on), f.Sending()
		r, err := pages.Create(ctx, client, *size, &o)
		return cli.Written(on, "written", r, err)
	})
}

// writingPages makes cmd a verb that writes pages from --offset on. check refuses its other flags, and write sends one request.
func writingPages(f *cli.Factory, cmd *cobra.Command, done string, check func() error, write func(context.Context, *pageblob.Client, int64, *pages.PutOptions) (optimistic.Result, error)) *cobra.Command {
	set := cmd.Flags()
	var o pages.PutOptions
	var equal, atMost, less int64
	offset := set.Int64("offset", 0, "where to begin, in `bytes`, a multiple of 512")
	flags.Required(set, "offset", "")
	flags.Int(set, &equal, "if-sequence-eq", 0, "only if the sequence number is this `number`")
	flags.Int(set, &atMost, "if-sequence-le", 0, "only if the sequence number is at most this `number`, such as your fence")
	flags.Int(set, &less, "if-sequence-lt", 0, "only if the sequence number is less than this `number`")
	flags.WriteConditions(set, &o.Conditions, flags.CondAll)
	given := func(flag string, value *int64) *int64 {
		if set.Changed(flag) {
			return value
		}
		return nil
	}
	parse := cli.Checked(ref.ParseWritable, func() error {
		o.Sequence = pages.SequenceConditions{
			IfEqual: given("if-sequence-eq", &equal), IfAtMost: given("if-sequence-le", &atMost), IfLess: given("if-sequence-lt", &less),
		}
		if err := wholePages(fmt.Sprintf("--offset %d", *offset), "multiple", *offset, 0); err != nil {
			return err
		}
		return check()
	})
	return cli.On(f, cmd, parse, pageBlob(f), func(ctx context.Context, on ref.Blob, client *pageblob.Client) (cli.Result, error) {
		o.SendOptions = f.Sending()
		r, err := write(ctx, client, *offset, &o)
		return cli.Written(on, done, r, err)
	})
}

const maxPut = 4 << 20 // REST: "Put Page"

func newPagePutCmd(f *cli.Factory) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "put <container/blob> --offset <bytes> --file <file>",
		Short: "Write pages, on condition of version or sequence number",
		Long: `Write pages: a file of at most 4 MiB whose length is a multiple of 512, in one request. Pages that are all zeros are cleared.

A failed condition is a conflict (exit code 4; reason "sequence" when it was the sequence number). Without a condition, the
last writer wins.`,
		Example: "  azconc blob page put jobs/disk --offset 4096 --file page --if-sequence-le 7",
	}
	var file string
	flags.File(cmd.Flags(), &file, "`file` with the content; - is stdin")
	check := func() error { return nil }
	return writingPages(f, cmd, "written", check, func(ctx context.Context, client *pageblob.Client, offset int64, o *pages.PutOptions) (r optimistic.Result, err error) {
		data, err := f.WholeContent(ctx, file, maxPut)
		if err != nil {
			return r, err
		}
		if err := wholePages(fmt.Sprintf("--file %s has %d bytes, which", file, len(data)), "multiple", int64(len(data)), 1); err != nil {
			return r, err
		}
		return pages.Put(ctx, client, offset, data, o)
	})
}

func newPageClearCmd(f *cli.Factory) *cobra.Command {
	cmd := &cobra.Command{
		Use:     "clear <container/blob> --offset <bytes> --size <bytes>",
		Short:   "Clear pages, on condition of version or sequence number",
		Long:    "Clear pages, in one request, so that they read as zeros and use no storage. The conditions are those of page put.",
		Example: "  azconc blob page clear jobs/disk --offset 4096 --size 512",
	}
	size := cmd.Flags().Int64("size", 0, "how many `bytes`, a multiple of 512")
	flags.Required(cmd.Flags(), "size", "")
	check := func() error { return wholePages(fmt.Sprintf("--size %d", *size), "positive multiple", *size, 1) }
	return writingPages(f, cmd, "cleared", check, func(ctx context.Context, client *pageblob.Client, offset int64, o *pages.PutOptions) (optimistic.Result, error) {
		return pages.Clear(ctx, client, offset, *size, o)
	})
}

type pageRangesResult struct {
	Outcome string      `json:"outcome"`
	Blob    string      `json:"resource"`
	ETag    string      `json:"etag"`
	Size    int64       `json:"size"`
	Ranges  []pageRange `json:"ranges"`
}

type pageRange struct {
	Offset int64 `json:"offset"`
	Size   int64 `json:"size"`
}

func (r pageRangesResult) Text(w io.Writer) {
	for _, p := range r.Ranges {
		fmt.Fprintf(w, "%d %d\n", p.Offset, p.Size)
	}
}

func newPageRangesCmd(f *cli.Factory) *cobra.Command {
	cmd := &cobra.Command{
		Use:     "ranges <container/blob>",
		Short:   "List the ranges of a page blob that are not clear",
		Example: "  azconc blob page ranges jobs/disk",
	}
	var conditions optimistic.Conditions
	flags.ReadConditions(cmd.Flags(), &conditions, flags.CondAll)
	return cli.On(f, cmd, ref.ParseBlob, pageBlob(f), func(ctx context.Context, on ref.Blob, client *pageblob.Client) (cli.Result, error) {
		r := pageRangesResult{Outcome: "listed", Blob: on.String()}
		found := client.NewGetPageRangesPager(&pageblob.GetPageRangesOptions{AccessConditions: flags.BlobAccess(conditions)})
		var err error
		r.Ranges, _, err = cli.List(ctx, found, 0, func(page pageblob.GetPageRangesResponse) (ranges []pageRange) {
			r.ETag, r.Size = string(ptr.Value(page.ETag)), ptr.Value(page.BlobContentLength)
			for _, p := range page.PageRange {
				ranges = append(ranges, pageRange{ptr.Value(p.Start), ptr.Value(p.End) - ptr.Value(p.Start) + 1})
			}
			return ranges
		})
		return r, err
	})
}
