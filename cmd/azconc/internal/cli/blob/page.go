package blob

import (
	"context"
	"fmt"
	"io"

	"github.com/Azure/azure-sdk-for-go/sdk/storage/azblob/blob"
	"github.com/Azure/azure-sdk-for-go/sdk/storage/azblob/pageblob"
	"github.com/spf13/cobra"

	"github.com/azconc/azconc/cmd/azconc/internal/cli"
	"github.com/azconc/azconc/cmd/azconc/internal/cli/fail"
	"github.com/azconc/azconc/cmd/azconc/internal/cli/flags"
	"github.com/azconc/azconc/cmd/azconc/internal/cli/ref"
	"github.com/azconc/azconc/optimistic"
	"github.com/azconc/azconc/optimistic/blobs"
)

func newPageCmd(f *cli.Factory) *cobra.Command {
	return cli.NewGroupCmd("page", "Create page blobs, and write and clear their pages",
		newPageCreateCmd(f, nil),
		newPagePutCmd(f, nil),
		newPageClearCmd(f, nil),
		newPageRangesCmd(f, nil),
	)
}

// PageBlob returns the client of a page blob.
func PageBlob(f *cli.Factory, r ref.Blob) (*pageblob.Client, error) {
	c, err := f.Container(r)
	if err != nil {
		return nil, err
	}
	return c.NewPageBlobClient(r.Blob), nil
}

type pageCreateOptions struct {
	factory     *cli.Factory
	Blob        ref.Blob
	Size        int64
	Sequence    int64
	ContentType string
	Metadata    map[string]string
	Conditions  optimistic.Conditions
}

func newPageCreateCmd(f *cli.Factory, runF func(*pageCreateOptions) error) *cobra.Command {
	opts := &pageCreateOptions{factory: f}
	var conditions flags.Conditions
	var metadata []string
	cmd := &cobra.Command{
		Use:   "create <container/blob> --size <bytes>",
		Short: "Create a page blob of zeros, or replace an existing blob",
		Long: `Create a page blob of zeros. An existing blob is replaced unless a condition forbids it; with --if-none-match '*' the blob
must not exist.`,
		Args:    cli.ResourceArgs("<container/blob>"),
		Example: "  azconc blob page create jobs/disk --size 1048576 --if-none-match '*'",
		RunE: func(cmd *cobra.Command, args []string) (err error) {
			if opts.Blob, err = ref.ParseWritable(args[0]); err != nil {
				return err
			}
			switch {
			case !cmd.Flags().Changed("size"):
				return fail.Usagef("--size is missing")
			case opts.Size < 0 || opts.Size%blobs.PageSize != 0:
				return fail.WithHint(fail.Usagef("--size %d is not a multiple of %d", opts.Size, blobs.PageSize), "pages have 512 bytes")
			case opts.Sequence < 0:
				return fail.Usagef("--sequence %d is negative", opts.Sequence)
			}
			if opts.Metadata, err = flags.ParsePairs("--metadata", metadata); err != nil {
				return err
			}
			if opts.Conditions, err = conditions.ForWrite(); err != nil {
				return err
			}
			if runF != nil {
				return runF(opts)
			}
			return pageCreateRun(cmd.Context(), opts)
		},
	}
	cmd.Flags().Int64Var(&opts.Size, "size", 0, "length in `bytes`, a multiple of 512")
	cmd.Flags().Int64Var(&opts.Sequence, "sequence", 0, "sequence `number` to begin with")
	cmd.Flags().StringVar(&opts.ContentType, "content-type", "", "Content-Type of the blob (default by its name)")
	cmd.Flags().StringArrayVar(&metadata, "metadata", nil, "`name=value` to store with it; may be repeated")
	conditions.Add(cmd, flags.CondAll)
	return cmd
}

func pageCreateRun(ctx context.Context, opts *pageCreateOptions) error {
	client, err := PageBlob(opts.factory, opts.Blob)
	if err != nil {
		return err
	}
	if opts.ContentType == "" {
		opts.ContentType = cli.ContentType(opts.Blob.Blob)
	}
	r, err := blobs.CreatePages(ctx, client, opts.Size, &blobs.CreatePagesOptions{
		Conditions: opts.Conditions, SequenceNumber: opts.Sequence, Metadata: opts.Metadata,
		HTTPHeaders: &blob.HTTPHeaders{BlobContentType: flags.Optional(opts.ContentType)},
	})
	if err != nil {
		return fail.Tally(err, r)
	}
	return opts.factory.Print(cli.NewWriteResult(opts.Blob, "written", r))
}

// pageWriteOptions are those of the verbs that write pages.
type pageWriteOptions struct {
	factory *cli.Factory
	Blob    ref.Blob
	Offset  int64
	Size    int64  // to clear
	File    string // to put
	Options blobs.PageOptions
}

// newPageWriteCmd makes the command around a write of pages.
func newPageWriteCmd(f *cli.Factory, runF func(*pageWriteOptions) error, check func(*cobra.Command, *pageWriteOptions) error, run func(context.Context, *pageWriteOptions) error) (*cobra.Command, *pageWriteOptions) {
	opts := &pageWriteOptions{factory: f}
	var conditions flags.Conditions
	sequence := map[string]**int64{
		"if-sequence-eq": &opts.Options.Sequence.IfEqual, "if-sequence-le": &opts.Options.Sequence.IfAtMost, "if-sequence-lt": &opts.Options.Sequence.IfLess,
	}
	numbers := map[string]*int64{}
	cmd := &cobra.Command{
		Args: cli.ResourceArgs("<container/blob>"),
		RunE: func(cmd *cobra.Command, args []string) (err error) {
			if opts.Blob, err = ref.ParseWritable(args[0]); err != nil {
				return err
			}
			if opts.Offset < 0 || opts.Offset%blobs.PageSize != 0 {
				return fail.WithHint(fail.Usagef("--offset %d is not a multiple of %d", opts.Offset, blobs.PageSize), "pages have 512 bytes")
			}
			if err := check(cmd, opts); err != nil {
				return err
			}
			for name, into := range sequence {
				if !cmd.Flags().Changed(name) {
					continue
				}
				if *numbers[name] < 0 {
					return fail.Usagef("--%s %d is negative", name, *numbers[name])
				}
				*into = numbers[name]
			}
			if opts.Options.Conditions, err = conditions.ForWrite(); err != nil {
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
	conditions.Add(cmd, flags.CondAll)
	return cmd, opts
}

const MaxPut = 4 << 20 // REST: "Put Page"

func newPagePutCmd(f *cli.Factory, runF func(*pageWriteOptions) error) *cobra.Command {
	cmd, opts := newPageWriteCmd(f, runF, func(_ *cobra.Command, opts *pageWriteOptions) error {
		if opts.File == "" {
			return fail.WithHint(fail.Usagef("--file is missing"), "--file - reads stdin")
		}
		return nil
	}, pagePutRun)
	cmd.Use = "put <container/blob> --offset <bytes> --file <file>"
	cmd.Short = "Write pages, on condition of version or sequence number"
	cmd.Long = `Write pages: a file of at most 4 MiB whose length is a multiple of 512, in one request. Pages that are all zeros are cleared.

A failed condition is a conflict (exit code 4; reason "sequence" when it was the sequence number). Without a condition, the
last writer wins.`
	cmd.Example = "  azconc blob page put jobs/disk --offset 4096 --file page --if-sequence-le 7"
	cmd.Flags().StringVarP(&opts.File, "file", "f", "", "`file` with the content; - is stdin")
	return cmd
}

func pagePutRun(ctx context.Context, opts *pageWriteOptions) error {
	client, err := PageBlob(opts.factory, opts.Blob)
	if err != nil {
		return err
	}
	data, err := WholeContent(opts.factory, ctx, opts.File, MaxPut)
	if err != nil {
		return err
	}
	if len(data) == 0 || len(data)%blobs.PageSize != 0 {
		return fail.WithHint(fail.Usagef("--file %s has %d bytes, which is not a multiple of %d", opts.File, len(data), blobs.PageSize), "pages have 512 bytes")
	}
	r, err := blobs.PutPages(ctx, client, opts.Offset, data, &opts.Options)
	if err != nil {
		return fail.Tally(err, r)
	}
	return opts.factory.Print(cli.NewWriteResult(opts.Blob, "written", r))
}

func newPageClearCmd(f *cli.Factory, runF func(*pageWriteOptions) error) *cobra.Command {
	cmd, opts := newPageWriteCmd(f, runF, func(cmd *cobra.Command, opts *pageWriteOptions) error {
		if opts.Size <= 0 || opts.Size%blobs.PageSize != 0 {
			return fail.WithHint(fail.Usagef("--size %d is not a positive multiple of %d", opts.Size, blobs.PageSize), "pages have 512 bytes")
		}
		return nil
	}, pageClearRun)
	cmd.Use = "clear <container/blob> --offset <bytes> --size <bytes>"
	cmd.Short = "Clear pages, on condition of version or sequence number"
	cmd.Long = "Clear pages, in one request, so that they read as zeros and use no storage. The conditions are those of page put."
	cmd.Example = "  azconc blob page clear jobs/disk --offset 4096 --size 512"
	cmd.Flags().Int64Var(&opts.Size, "size", 0, "how many `bytes`, a multiple of 512")
	return cmd
}

func pageClearRun(ctx context.Context, opts *pageWriteOptions) error {
	client, err := PageBlob(opts.factory, opts.Blob)
	if err != nil {
		return err
	}
	r, err := blobs.ClearPages(ctx, client, opts.Offset, opts.Size, &opts.Options)
	if err != nil {
		return fail.Tally(err, r)
	}
	return opts.factory.Print(cli.NewWriteResult(opts.Blob, "cleared", r))
}

type pageRangesOptions struct {
	factory    *cli.Factory
	Blob       ref.Blob
	Conditions optimistic.Conditions
}

func newPageRangesCmd(f *cli.Factory, runF func(*pageRangesOptions) error) *cobra.Command {
	opts := &pageRangesOptions{factory: f}
	var conditions flags.Conditions
	cmd := &cobra.Command{
		Use:     "ranges <container/blob>",
		Short:   "List the ranges of a page blob that are not clear",
		Args:    cli.ResourceArgs("<container/blob>"),
		Example: "  azconc blob page ranges jobs/disk",
		RunE: func(cmd *cobra.Command, args []string) (err error) {
			if opts.Blob, err = ref.ParseBlob(args[0]); err != nil {
				return err
			}
			if opts.Conditions, err = conditions.ForRead(); err != nil {
				return err
			}
			if runF != nil {
				return runF(opts)
			}
			return pageRangesRun(cmd.Context(), opts)
		},
	}
	conditions.Add(cmd, flags.CondAll)
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

func (r pageRangesResult) Text(w io.Writer) {
	for _, p := range r.Ranges {
		fmt.Fprintf(w, "%d %d\n", p.Offset, p.Size)
	}
}

func pageRangesRun(ctx context.Context, opts *pageRangesOptions) error {
	client, err := PageBlob(opts.factory, opts.Blob)
	if err != nil {
		return err
	}
	r := pageRangesResult{Outcome: "listed", Blob: opts.Blob.String(), Ranges: []pageRange{}}
	access := flags.BlobAccess(opts.Conditions)
	for pages := client.NewGetPageRangesPager(&pageblob.GetPageRangesOptions{AccessConditions: access}); pages.More(); {
		page, err := pages.NextPage(ctx)
		if err != nil {
			return err
		}
		r.ETag, r.Size = string(cli.Deref(page.ETag)), cli.Deref(page.BlobContentLength)
		for _, p := range page.PageRange {
			r.Ranges = append(r.Ranges, pageRange{cli.Deref(p.Start), cli.Deref(p.End) - cli.Deref(p.Start) + 1})
		}
	}
	return opts.factory.Print(r)
}
