package blob

import (
	"context"
	"fmt"
	"io"

	"github.com/Azure/azure-sdk-for-go/sdk/storage/azblob/blob"
	"github.com/Azure/azure-sdk-for-go/sdk/storage/azblob/pageblob"
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

func newPageCmd(f *cli.Factory) *cobra.Command {
	return cli.NewGroupCmd("page", "Create page blobs, and write and clear their pages",
		pageCreateVerb().Command(f),
		pagePutVerb().Command(f),
		pageClearVerb().Command(f),
		pageRangesVerb().Command(f),
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
	Blob        ref.Blob
	Size        int64
	Sequence    int64
	ContentType string
	Metadata    map[string]string
	Conditions  optimistic.Conditions
}

func pageCreateVerb() cli.Verb[pageCreateOptions] {
	var conditions flags.Conditions
	var metadata []string
	return cli.Verb[pageCreateOptions]{
		Use:   "create <container/blob> --size <bytes>",
		Short: "Create a page blob of zeros, or replace an existing blob",
		Long: `Create a page blob of zeros. An existing blob is replaced unless a condition forbids it; with --if-none-match '*' the blob
must not exist.`,
		Example: "  azconc blob page create jobs/disk --size 1048576 --if-none-match '*'",
		Flags: func(opts *pageCreateOptions, set *pflag.FlagSet) {
			set.Int64Var(&opts.Size, "size", 0, "length in `bytes`, a multiple of 512")
			set.Int64Var(&opts.Sequence, "sequence", 0, "sequence `number` to begin with")
			set.StringVar(&opts.ContentType, "content-type", "", "Content-Type of the blob (default by its name)")
			set.StringArrayVar(&metadata, "metadata", nil, "`name=value` to store with it; may be repeated")
			conditions.Add(set, flags.CondAll)
		},
		Parse: func(opts *pageCreateOptions, in cli.Input) (err error) {
			if opts.Blob, err = ref.ParseWritable(in.Args[0]); err != nil {
				return err
			}
			switch {
			case !in.Flags.Changed("size"):
				return fail.Usagef("--size is missing")
			case opts.Size < 0 || opts.Size%blobs.PageSize != 0:
				return fail.WithHint(fail.Usagef("--size %d is not a multiple of %d", opts.Size, blobs.PageSize), "pages have 512 bytes")
			case opts.Sequence < 0:
				return fail.Usagef("--sequence %d is negative", opts.Sequence)
			}
			if opts.Metadata, err = flags.ParsePairs("--metadata", metadata); err != nil {
				return err
			}
			opts.Conditions, err = conditions.ForWrite()
			return err
		},
		Run: pageCreateRun,
	}
}

func pageCreateRun(ctx context.Context, f *cli.Factory, opts *pageCreateOptions) error {
	client, err := PageBlob(f, opts.Blob)
	if err != nil {
		return err
	}
	if opts.ContentType == "" {
		opts.ContentType = cli.ContentType(opts.Blob.Blob)
	}
	r, err := blobs.CreatePages(ctx, client, opts.Size, &blobs.CreatePagesOptions{
		Conditions: opts.Conditions, SequenceNumber: opts.Sequence, Metadata: opts.Metadata,
		HTTPHeaders: &blob.HTTPHeaders{BlobContentType: ptr.Optional(opts.ContentType)},
	})
	if err != nil {
		return fail.Tally(err, r)
	}
	return f.Print(cli.NewWriteResult(opts.Blob, "written", r))
}

// pageWriteOptions are those of the verbs that write pages.
type pageWriteOptions struct {
	Blob    ref.Blob
	Offset  int64
	Size    int64  // to clear
	File    string // to put
	Options blobs.PageOptions

	conditions          flags.Conditions
	equal, atMost, less int64
}

func (o *pageWriteOptions) add(set *pflag.FlagSet) {
	set.Int64Var(&o.Offset, "offset", 0, "where to begin, in `bytes`, a multiple of 512")
	set.Int64Var(&o.equal, "if-sequence-eq", 0, "only if the sequence number is this `number`")
	set.Int64Var(&o.atMost, "if-sequence-le", 0, "only if the sequence number is at most this `number`, such as your fence")
	set.Int64Var(&o.less, "if-sequence-lt", 0, "only if the sequence number is less than this `number`")
	o.conditions.Add(set, flags.CondAll)
}

func (o *pageWriteOptions) parse(in cli.Input) (err error) {
	if o.Blob, err = ref.ParseWritable(in.Args[0]); err != nil {
		return err
	}
	if o.Offset < 0 || o.Offset%blobs.PageSize != 0 {
		return fail.WithHint(fail.Usagef("--offset %d is not a multiple of %d", o.Offset, blobs.PageSize), "pages have 512 bytes")
	}
	if in.Flags.Lookup("file") != nil && o.File == "" {
		return fail.WithHint(fail.Usagef("--file is missing"), "--file - reads stdin")
	}
	if in.Flags.Lookup("size") != nil && (o.Size <= 0 || o.Size%blobs.PageSize != 0) {
		return fail.WithHint(fail.Usagef("--size %d is not a positive multiple of %d", o.Size, blobs.PageSize), "pages have 512 bytes")
	}
	for _, c := range []struct {
		flag  string
		value *int64
		into  **int64
	}{
		{"if-sequence-eq", &o.equal, &o.Options.Sequence.IfEqual},
		{"if-sequence-le", &o.atMost, &o.Options.Sequence.IfAtMost},
		{"if-sequence-lt", &o.less, &o.Options.Sequence.IfLess},
	} {
		if !in.Flags.Changed(c.flag) {
			continue
		}
		if *c.value < 0 {
			return fail.Usagef("--%s %d is negative", c.flag, *c.value)
		}
		*c.into = c.value
	}
	o.Options.Conditions, err = o.conditions.ForWrite()
	return err
}

const MaxPut = 4 << 20 // REST: "Put Page"

func pagePutVerb() cli.Verb[pageWriteOptions] {
	return cli.Verb[pageWriteOptions]{
		Use:   "put <container/blob> --offset <bytes> --file <file>",
		Short: "Write pages, on condition of version or sequence number",
		Long: `Write pages: a file of at most 4 MiB whose length is a multiple of 512, in one request. Pages that are all zeros are cleared.

A failed condition is a conflict (exit code 4; reason "sequence" when it was the sequence number). Without a condition, the
last writer wins.`,
		Example: "  azconc blob page put jobs/disk --offset 4096 --file page --if-sequence-le 7",
		Flags: func(opts *pageWriteOptions, set *pflag.FlagSet) {
			opts.add(set)
			set.StringVarP(&opts.File, "file", "f", "", "`file` with the content; - is stdin")
		},
		Parse: (*pageWriteOptions).parse,
		Run:   pagePutRun,
	}
}

func pagePutRun(ctx context.Context, f *cli.Factory, opts *pageWriteOptions) error {
	client, err := PageBlob(f, opts.Blob)
	if err != nil {
		return err
	}
	data, err := WholeContent(f, ctx, opts.File, MaxPut)
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
	return f.Print(cli.NewWriteResult(opts.Blob, "written", r))
}

func pageClearVerb() cli.Verb[pageWriteOptions] {
	return cli.Verb[pageWriteOptions]{
		Use:     "clear <container/blob> --offset <bytes> --size <bytes>",
		Short:   "Clear pages, on condition of version or sequence number",
		Long:    "Clear pages, in one request, so that they read as zeros and use no storage. The conditions are those of page put.",
		Example: "  azconc blob page clear jobs/disk --offset 4096 --size 512",
		Flags: func(opts *pageWriteOptions, set *pflag.FlagSet) {
			opts.add(set)
			set.Int64Var(&opts.Size, "size", 0, "how many `bytes`, a multiple of 512")
		},
		Parse: (*pageWriteOptions).parse,
		Run:   pageClearRun,
	}
}

func pageClearRun(ctx context.Context, f *cli.Factory, opts *pageWriteOptions) error {
	client, err := PageBlob(f, opts.Blob)
	if err != nil {
		return err
	}
	r, err := blobs.ClearPages(ctx, client, opts.Offset, opts.Size, &opts.Options)
	if err != nil {
		return fail.Tally(err, r)
	}
	return f.Print(cli.NewWriteResult(opts.Blob, "cleared", r))
}

type pageRangesOptions struct {
	Blob       ref.Blob
	Conditions optimistic.Conditions
}

func pageRangesVerb() cli.Verb[pageRangesOptions] {
	var conditions flags.Conditions
	return cli.Verb[pageRangesOptions]{
		Use:     "ranges <container/blob>",
		Short:   "List the ranges of a page blob that are not clear",
		Example: "  azconc blob page ranges jobs/disk",
		Flags: func(_ *pageRangesOptions, set *pflag.FlagSet) {
			conditions.Add(set, flags.CondAll)
		},
		Parse: func(opts *pageRangesOptions, in cli.Input) (err error) {
			if opts.Blob, err = ref.ParseBlob(in.Args[0]); err != nil {
				return err
			}
			opts.Conditions, err = conditions.ForRead()
			return err
		},
		Run: pageRangesRun,
	}
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

func pageRangesRun(ctx context.Context, f *cli.Factory, opts *pageRangesOptions) error {
	client, err := PageBlob(f, opts.Blob)
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
		r.ETag, r.Size = string(ptr.Value(page.ETag)), ptr.Value(page.BlobContentLength)
		for _, p := range page.PageRange {
			r.Ranges = append(r.Ranges, pageRange{ptr.Value(p.Start), ptr.Value(p.End) - ptr.Value(p.Start) + 1})
		}
	}
	return f.Print(r)
}
