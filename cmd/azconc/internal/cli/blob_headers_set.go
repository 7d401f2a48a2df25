package cli

import (
	"context"
	"encoding/base64"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/azconc/azconc/optimistic"
)

type blobHeadersSetOptions struct {
	factory     *Factory
	Blob        blobRef
	Set         map[string]string // by flag; an empty value takes the header away
	Conditions  optimistic.Conditions
	MaxAttempts int
}

// headerFields are the flags of headers set, and the field that each sets.
var headerFields = []struct {
	flag, name string
	field      func(*optimistic.HTTPHeaders) *string
}{
	{"content-type", "Content-Type", func(h *optimistic.HTTPHeaders) *string { return &h.ContentType }},
	{"content-encoding", "Content-Encoding", func(h *optimistic.HTTPHeaders) *string { return &h.ContentEncoding }},
	{"content-language", "Content-Language", func(h *optimistic.HTTPHeaders) *string { return &h.ContentLanguage }},
	{"content-disposition", "Content-Disposition", func(h *optimistic.HTTPHeaders) *string { return &h.ContentDisposition }},
	{"content-md5", "Content-MD5, in base64,", func(h *optimistic.HTTPHeaders) *string { return &h.ContentMD5 }},
	{"cache-control", "Cache-Control", func(h *optimistic.HTTPHeaders) *string { return &h.CacheControl }},
}

func newBlobHeadersSetCmd(f *Factory, runF func(*blobHeadersSetOptions) error) *cobra.Command {
	opts := &blobHeadersSetOptions{factory: f}
	var conditions conditionFlags
	cmd := &cobra.Command{
		Use:   "set <container/blob> --<header> <value>…",
		Short: "Set some of a blob's HTTP headers and keep the rest",
		Long: `Set some of a blob's HTTP headers and keep the rest. An empty value removes a header.

The service replaces all headers at once, so azconc reads them and writes them back on condition that the blob has not
changed; with --if-match a conflict is final. Headers have no room for an id: if a response is lost and the blob has changed
since, the change may be this write or another, and the exit code is 5. It is safe to set the headers again.`,
		Args: resourceArgs("<container/blob>"),
		Example: `  azconc blob headers set site/app.js --cache-control 'max-age=3600' --content-type text/javascript
  azconc blob headers set site/app.js --content-encoding ''`,
		RunE: func(cmd *cobra.Command, args []string) (err error) {
			if opts.Blob, err = parseWritable(args[0]); err != nil {
				return err
			}
			opts.Set = map[string]string{}
			for _, h := range headerFields {
				if flag := cmd.Flags().Lookup(h.flag); flag.Changed {
					opts.Set[h.flag] = flag.Value.String()
				}
			}
			if len(opts.Set) == 0 {
				return withHint(usagef("no header is given"), "give a header, as in --content-type text/plain")
			}
			if sum, err := base64.StdEncoding.DecodeString(opts.Set["content-md5"]); err != nil || len(sum) != 0 && len(sum) != 16 {
				return usagef("--content-md5 is not an MD5 sum in base64")
			}
			if opts.Conditions, err = conditions.forWrite(); err != nil {
				return err
			}
			if opts.MaxAttempts < 0 || cmd.Flags().Changed("max-attempts") && opts.MaxAttempts == 0 {
				return usagef("--max-attempts %d is not positive", opts.MaxAttempts)
			}
			if runF != nil {
				return runF(opts)
			}
			return blobHeadersSetRun(cmd.Context(), opts)
		},
	}
	for _, h := range headerFields {
		cmd.Flags().String(h.flag, "", fmt.Sprintf("%s to serve the blob with", h.name))
		allowEmpty(cmd, h.flag)
	}
	cmd.Flags().IntVar(&opts.MaxAttempts, "max-attempts", 0, "give up after this many conflicts (default 12, or 30s)")
	conditions.add(cmd, condAll)
	return cmd
}

func blobHeadersSetRun(ctx context.Context, opts *blobHeadersSetOptions) error {
	client, err := opts.factory.Blob(opts.Blob)
	if err != nil {
		return err
	}
	target := &guarded[optimistic.HTTPHeaders]{Target: optimistic.BlobHeaders(client), op: "update", conditions: opts.Conditions}
	update := &optimistic.UpdateOptions{Conditions: carried(opts.Conditions), Attempts: opts.MaxAttempts}
	if opts.MaxAttempts > 0 {
		update.Elapsed = -1
	}
	r, err := optimistic.Update(ctx, target, func(_ context.Context, headers *optimistic.HTTPHeaders) error {
		for _, h := range headerFields {
			if value, ok := opts.Set[h.flag]; ok {
				*h.field(headers) = value
			}
		}
		return nil
	}, update)
	if err != nil {
		return updateHint(tally(err, r), opts.Conditions, true)
	}
	return opts.factory.Print(newWriteResult(opts.Blob, "updated", r))
}
