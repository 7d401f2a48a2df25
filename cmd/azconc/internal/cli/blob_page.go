package cli

import (
	"context"
	"fmt"
	"io"

	"github.com/Azure/azure-sdk-for-go/sdk/storage/azblob/blob"
	"github.com/Azure/azure-sdk-for-go/sdk/storage/azblob/pageblob"
	"github.com/spf13/cobra"

	"github.com/azconc/azconc/optimistic"
)

func newBlobPageCmd(f *Factory) *cobra.Command {
	return newGroupCmd("page", "Create page blobs, and write and clear their pages",
		newBlobPageCreateCmd(f, nil),
		newBlobPagePutCmd(f, nil),
		newBlobPageClearCmd(f, nil),
		newBlobPageRangesCmd(f, nil),
	)
}

// PageBlob returns the client of a page blob.
func (f *Factory) PageBlob(r blobRef) (*pageblob.Client, error) {
	c, err := f.Container(r)
	if err != nil {
		return nil, err
	}
	return c.NewPageBlobClient(r.Blob), nil
}

type blobPageCreateOptions struct {
	factory     *Factory
	Blob        blobRef
	Size        int64
	Sequence    int64
	ContentType string
	Metadata    map[string]string
	Conditions  optimistic.Conditions
}

func newBlobPageCreateCmd(f *Factory, runF func(*blobPageCreateOptions) error) *cobra.Command {
	opts := &blobPageCreateOptions{factory: f}
	var conditions conditionFlags
	var metadata []string
	cmd := &cobra.Command{
		Use:   "create <container/blob> --size <bytes>",
		Short: "Create a page blob of zeros, or replace an existing blob",
		Long: `Create a page blob of zeros. An existing blob is replaced unless a condition forbids it; with --if-none-match '*' the blob
must not exist.`,
		Args:    resourceArgs("<container/blob>"),
		Example: "  azconc blob page create jobs/disk --size 1048576 --if-none-match '*'",
		RunE: func(cmd *cobra.Command, args []string) (err error) {
			if opts.Blob, err = parseWritable(args[0]); err != nil {
				return err
			}
			switch {
			case !cmd.Flags().Changed("size"):
				return usagef("--size is missing")
			case opts.Size < 0 || opts.Size%optimistic.PageSize != 0:
				return withHint(usagef("--size %d is not a multiple of %d", opts.Size, optimistic.PageSize), "pages have 512 bytes")
			case opts.Sequence < 0:
				return usagef("--sequence %d is negative", opts.Sequence)
			}
			if opts.Metadata, err = parsePairs("--metadata", metadata); err != nil {
				return err
			}
			if opts.Conditions, err = conditions.forWrite(); err != nil {
				return err
			}
			if runF != nil {
				return runF(opts)
			}
			return blobPageCreateRun(cmd.Context(), opts)
		},
	}
	cmd.Flags().Int64Var(&opts.Size, "size", 0, "length in `bytes`, a multiple of 512")
	cmd.Flags().Int64Var(&opts.Sequence, "sequence", 0, "sequence `number` to begin with")
	cmd.Flags().StringVar(&opts.ContentType, "content-type", "", "Content-Type of the blob (default by its name)")
	cmd.Flags().StringArrayVar(&metadata, "metadata", nil, "`name=value` to store with it; may be repeated")
	conditions.add(cmd, condAll)
	return cmd
}

func blobPageCreateRun(ctx context.Context, opts *blobPageCreateOptions) error {
	client, err := opts.factory.PageBlob(opts.Blob)
	if err != nil {
		return err
	}
	if opts.ContentType == "" {
		opts.ContentType = contentType(opts.Blob.Blob)
	}
	r, err := optimistic.CreatePages(ctx, client, opts.Size, &optimistic.CreatePagesOptions{
		Conditions: opts.Conditions, SequenceNumber: opts.Sequence, Metadata: opts.Metadata,
		HTTPHeaders: &blob.HTTPHeaders{BlobContentType: optional(opts.ContentType)},
	})
	if err != nil {
		return tally(err, r)
	}
	return opts.factory.Print(newWriteResult(opts.Blob, "written", r))
}

// pageWriteOptions are those of the verbs that write pages.
type pageWriteOptions struct {
	factory *Factory
	Blob    blobRef
	Offset  int64
	Size    int64  // to clear
	File    string // to put
	Options optimistic.PageOptions
}

// newPageWriteCmd makes the command around a write of pages.
func newPageWriteCmd(f *Factory, runF func(*pageWriteOptions) error, check func(*cobra.Command, *pageWriteOptions) error, run func(context.Context, *pageWriteOptions) error) (*cobra.Command, *pageWriteOptions) {
	opts := &pageWriteOptions{factory: f}
	var conditions conditionFlags
	sequence := map[string]**int64{
		"if-sequence-eq": &opts.Options.Sequence.IfEqual, "if-sequence-le": &opts.Options.Sequence.IfAtMost, "if-sequence-lt": &opts.Options.Sequence.IfLess,
	}
	numbers := map[string]*int64{}
	cmd := &cobra.Command{
		Args: resourceArgs("<container/blob>"),
		RunE: func(cmd *cobra.Command, args []string) (err error) {
			if opts.Blob, err = parseWritable(args[0]); err != nil {
				return err
			}
			if opts.Offset < 0 || opts.Offset%optimistic.PageSize != 0 {
				return withHint(usagef("--offset %d is not a multiple of %d", opts.Offset, optimistic.PageSize), "pages have 512 bytes")
			}
			if err := check(cmd, opts); err != nil {
				return err
			}
			for name, into := range sequence {
				if !cmd.Flags().Changed(name) {
					continue
				}
				if *numbers[name] < 0 {
					return usagef("--%s %d is negative", name, *numbers[name])
				}
				*into = numbers[name]
			}
			if opts.Options.Conditions, err = conditions.forWrite(); err != nil {
				return err
			}
			if runF != nil {
				return runF(opts)
			}
			return run(cmd.Context(), opts)
		},
	}
	cmd.Flags().Int64Var(&opts.Offset, "offset", 0, "where to begin, in `bytes`, a multiple of 512")
	numbers["if-sequence-eq"] = cmd.Flags().Int64("if-sequence-eq", 0, "only if the sequence number is this `number`")
	numbers["if-sequence-le"] = cmd.Flags().Int64("if-sequence-le", 0, "only if the sequence number is at most this `number`, such as your fence")
	numbers["if-sequence-lt"] = cmd.Flags().Int64("if-sequence-lt", 0, "only if the sequence number is less than this `number`")
	conditions.add(cmd, condAll)
	return cmd, opts
}

const maxPut = 4 << 20 // REST: "Put Page"

func newBlobPagePutCmd(f *Factory, runF func(*pageWriteOptions) error) *cobra.Command {
	cmd, opts := newPageWriteCmd(f, runF, func(_ *cobra.Command, opts *pageWriteOptions) error {
		if opts.File == "" {
			return withHint(usagef("--file is missing"), "--file - reads stdin")
		}
		return nil
	}, blobPagePutRun)
	cmd.Use = "put <container/blob> --offset <bytes> --file <file>"
	cmd.Short = "Write pages, on condition of version or sequence number"
	cmd.Long = `Write pages: a file of at most 4 MiB whose length is a multiple of 512, in one request. Pages that are all zeros are cleared.

A failed condition is a conflict (exit code 4; reason "sequence" when it was the sequence number). Without a condition, the
last writer wins.`
	cmd.Example = "  azconc blob page put jobs/disk --offset 4096 --file page --if-sequence-le 7"
	cmd.Flags().StringVarP(&opts.File, "file", "f", "", "`file` with the content; - is stdin")
	return cmd
}

func blobPagePutRun(ctx context.Context, opts *pageWriteOptions) error {
	client, err := opts.factory.PageBlob(opts.Blob)
	if err != nil {
		return err
	}
	data, err := opts.factory.wholeContent(ctx, opts.File, maxPut)
	if err != nil {
		return err
	}
	if len(data) == 0 || len(data)%optimistic.PageSize != 0 {
		return withHint(usagef("--file %s has %d bytes, which is not a multiple of %d", opts.File, len(data), optimistic.PageSize), "pages have 512 bytes")
	}
	r, err := optimistic.PutPages(ctx, client, opts.Offset, data, &opts.Options)
	if err != nil {
		return tally(err, r)
	}
	return opts.factory.Print(newWriteResult(opts.Blob, "written", r))
}

func newBlobPageClearCmd(f *Factory, runF func(*pageWriteOptions) error) *cobra.Command {
	cmd, opts := newPageWriteCmd(f, runF, func(cmd *cobra.Command, opts *pageWriteOptions) error {
		if opts.Size <= 0 || opts.Size%optimistic.PageSize != 0 {
			return withHint(usagef("--size %d is not a positive multiple of %d", opts.Size, optimistic.PageSize), "pages have 512 bytes")
		}
		return nil
	}, blobPageClearRun)
	cmd.Use = "clear <container/blob> --offset <bytes> --size <bytes>"
	cmd.Short = "Clear pages, on condition of version or sequence number"
	cmd.Long = "Clear pages, in one request, so that they read as zeros and use no storage. The conditions are those of page put."
	cmd.Example = "  azconc blob page clear jobs/disk --offset 4096 --size 512"
	cmd.Flags().Int64Var(&opts.Size, "size", 0, "how many `bytes`, a multiple of 512")
	return cmd
}

func blobPageClearRun(ctx context.Context, opts *pageWriteOptions) error {
	client, err := opts.factory.PageBlob(opts.Blob)
	if err != nil {
		return err
	}
	r, err := optimistic.ClearPages(ctx, client, opts.Offset, opts.Size, &opts.Options)
	if err != nil {
		return tally(err, r)
	}
	return opts.factory.Print(newWriteResult(opts.Blob, "cleared", r))
}

type blobPageRangesOptions struct {
	factory    *Factory
	Blob       blobRef
	Conditions optimistic.Conditions
}

func newBlobPageRangesCmd(f *Factory, runF func(*blobPageRangesOptions) error) *cobra.Command {
	opts := &blobPageRangesOptions{factory: f}
	var conditions conditionFlags
	cmd := &cobra.Command{
		Use:     "ranges <container/blob>",
		Short:   "List the ranges of a page blob that are not clear",
		Args:    resourceArgs("<container/blob>"),
		Example: "  azconc blob page ranges jobs/disk",
		RunE: func(cmd *cobra.Command, args []string) (err error) {
			if opts.Blob, err = parseBlob(args[0]); err != nil {
				return err
			}
			if opts.Conditions, err = conditions.forRead(); err != nil {
				return err
			}
			if runF != nil {
				return runF(opts)
			}
			return blobPageRangesRun(cmd.Context(), opts)
		},
	}
	conditions.add(cmd, condAll)
	return cmd
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

func (r pageRangesResult) text(w io.Writer) {
	for _, p := range r.Ranges {
		fmt.Fprintf(w, "%d %d\n", p.Offset, p.Size)
	}
}

func blobPageRangesRun(ctx context.Context, opts *blobPageRangesOptions) error {
	client, err := opts.factory.PageBlob(opts.Blob)
	if err != nil {
		return err
	}
	r := pageRangesResult{Outcome: "listed", Blob: opts.Blob.String(), Ranges: []pageRange{}}
	access := blobAccess(opts.Conditions)
	for pages := client.NewGetPageRangesPager(&pageblob.GetPageRangesOptions{AccessConditions: access}); pages.More(); {
		page, err := pages.NextPage(ctx)
		if err != nil {
			return err
		}
		r.ETag, r.Size = string(deref(page.ETag)), deref(page.BlobContentLength)
		for _, p := range page.PageRange {
			r.Ranges = append(r.Ranges, pageRange{deref(p.Start), deref(p.End) - deref(p.Start) + 1})
		}
	}
	return opts.factory.Print(r)
}
