package blob

import (
	"context"
	"fmt"
	"io"

	"github.com/azconc/azconc/optimistic/pages"

	"github.com/Azure/azure-sdk-for-go/sdk/storage/azblob/blob"
	"github.com/Azure/azure-sdk-for-go/sdk/storage/azblob/pageblob"
	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/azconc/azconc/cmd/azconc/internal/cli"
	"github.com/azconc/azconc/cmd/azconc/internal/cli/fail"
	"github.com/azconc/azconc/cmd/azconc/internal/cli/flags"
	"github.com/azconc/azconc/cmd/azconc/internal/cli/ref"
	"github.com/azconc/azconc/optimistic"
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

// pageBlob returns the client of a page blob.
func pageBlob(f *cli.Factory, r ref.Blob) (*pageblob.Client, error) {
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
	return cli.Verb[pageCreateOptions]{
		Use:   "create <container/blob> --size <bytes>",
		Short: "Create a page blob of zeros, or replace an existing blob",
		Long: `Create a page blob of zeros. An existing blob is replaced unless a condition forbids it; with --if-none-match '*' the blob
must not exist.`,
		Example: "  azconc blob page create jobs/disk --size 1048576 --if-none-match '*'",
		Flags: func(opts *pageCreateOptions, set *pflag.FlagSet) {
			set.Int64Var(&opts.Size, "size", 0, "length in `bytes`, a multiple of 512")
			flags.Int(set, &opts.Sequence, "sequence", 0, "sequence `number` to begin with")
			flags.Header(set, &opts.ContentType, "content-type", "Content-Type of the blob (default by its name)")
			flags.Metadata(set, &opts.Metadata, "`name=value` to store with it")
			flags.WriteConditions(set, &opts.Conditions, flags.CondAll)
		},
		Resource: func(opts *pageCreateOptions, arg string) (err error) {
			opts.Blob, err = ref.ParseWritable(arg)
			return err
		},
		Parse: func(opts *pageCreateOptions, in cli.Input) error {
			switch {
			case !in.Flags.Changed("size"):
				return fail.Usagef("--size is missing")
			case opts.Size < 0 || opts.Size%pages.PageSize != 0:
				return fail.WithHint(fail.Usagef("--size %d is not a multiple of %d", opts.Size, pages.PageSize), "pages have 512 bytes")
			}
			return nil
		},
		Run: pageCreateRun,
	}
}

func pageCreateRun(ctx context.Context, f *cli.Factory, opts *pageCreateOptions) error {
	client, err := pageBlob(f, opts.Blob)
	if err != nil {
		return err
	}
	if opts.ContentType == "" {
		opts.ContentType = cli.ContentType(opts.Blob.Blob)
	}
	r, err := pages.Create(ctx, client, opts.Size, &pages.CreateOptions{
		Conditions: opts.Conditions, SequenceNumber: opts.Sequence, Metadata: opts.Metadata,
		HTTPHeaders: &blob.HTTPHeaders{BlobContentType: ptr.Optional(opts.ContentType)},
	})
	return f.PrintWrite(opts.Blob, "written", r, err)
}

// pageWriteOptions are those of the verbs that write pages.
type pageWriteOptions struct {
	Blob    ref.Blob
	Offset  int64
	Size    int64  // to clear
	File    string // to put
	Options pages.PutOptions

	equal, atMost, less int64
}

func (o *pageWriteOptions) add(set *pflag.FlagSet) {
	set.Int64Var(&o.Offset, "offset", 0, "where to begin, in `bytes`, a multiple of 512")
	flags.Int(set, &o.equal, "if-sequence-eq", 0, "only if the sequence number is this `number`")
	flags.Int(set, &o.atMost, "if-sequence-le", 0, "only if the sequence number is at most this `number`, such as your fence")
	flags.Int(set, &o.less, "if-sequence-lt", 0, "only if the sequence number is less than this `number`")
	flags.WriteConditions(set, &o.Options.Conditions, flags.CondAll)
}

func (o *pageWriteOptions) resource(arg string) (err error) {
	o.Blob, err = ref.ParseWritable(arg)
	return err
}

func (o *pageWriteOptions) parse(in cli.Input) error {
	if o.Offset < 0 || o.Offset%pages.PageSize != 0 {
		return fail.WithHint(fail.Usagef("--offset %d is not a multiple of %d", o.Offset, pages.PageSize), "pages have 512 bytes")
	}
	if in.Flags.Lookup("size") != nil && (o.Size <= 0 || o.Size%pages.PageSize != 0) {
		return fail.WithHint(fail.Usagef("--size %d is not a positive multiple of %d", o.Size, pages.PageSize), "pages have 512 bytes")
	}
	given := func(flag string, value *int64) *int64 {
		if in.Flags.Changed(flag) {
			return value
		}
		return nil
	}
	o.Options.Sequence = pages.SequenceConditions{
		IfEqual: given("if-sequence-eq", &o.equal), IfAtMost: given("if-sequence-le", &o.atMost), IfLess: given("if-sequence-lt", &o.less),
	}
	return nil
}

const maxPut = 4 << 20 // REST: "Put Page"

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
			flags.File(set, &opts.File, "`file` with the content; - is stdin")
		},
		Resource: (*pageWriteOptions).resource,
		Parse:    (*pageWriteOptions).parse,
		Run:      pagePutRun,
	}
}

func pagePutRun(ctx context.Context, f *cli.Factory, opts *pageWriteOptions) error {
	client, err := pageBlob(f, opts.Blob)
	if err != nil {
		return err
	}
	data, err := f.WholeContent(ctx, opts.File, maxPut)
	if err != nil {
		return err
	}
	if len(data) == 0 || len(data)%pages.PageSize != 0 {
		return fail.WithHint(fail.Usagef("--file %s has %d bytes, which is not a multiple of %d", opts.File, len(data), pages.PageSize), "pages have 512 bytes")
	}
	r, err := pages.Put(ctx, client, opts.Offset, data, &opts.Options)
	return f.PrintWrite(opts.Blob, "written", r, err)
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
		Resource: (*pageWriteOptions).resource,
		Parse:    (*pageWriteOptions).parse,
		Run:      pageClearRun,
	}
}

func pageClearRun(ctx context.Context, f *cli.Factory, opts *pageWriteOptions) error {
	client, err := pageBlob(f, opts.Blob)
	if err != nil {
		return err
	}
	r, err := pages.Clear(ctx, client, opts.Offset, opts.Size, &opts.Options)
	return f.PrintWrite(opts.Blob, "cleared", r, err)
}

type pageRangesOptions struct {
	Blob       ref.Blob
	Conditions optimistic.Conditions
}

func pageRangesVerb() cli.Verb[pageRangesOptions] {
	return cli.Verb[pageRangesOptions]{
		Use:     "ranges <container/blob>",
		Short:   "List the ranges of a page blob that are not clear",
		Example: "  azconc blob page ranges jobs/disk",
		Flags: func(opts *pageRangesOptions, set *pflag.FlagSet) {
			flags.ReadConditions(set, &opts.Conditions, flags.CondAll)
		},
		Resource: func(opts *pageRangesOptions, arg string) (err error) { opts.Blob, err = ref.ParseBlob(arg); return err },
		Run:      pageRangesRun,
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
	client, err := pageBlob(f, opts.Blob)
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
