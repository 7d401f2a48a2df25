package blob

import (
	"context"
	"encoding/base64"

	"github.com/spf13/pflag"

	"github.com/azconc/azconc/cmd/azconc/internal/cli"
	"github.com/azconc/azconc/cmd/azconc/internal/cli/change"
	"github.com/azconc/azconc/cmd/azconc/internal/cli/fail"
	"github.com/azconc/azconc/cmd/azconc/internal/cli/flags"
	"github.com/azconc/azconc/cmd/azconc/internal/cli/ref"
	"github.com/azconc/azconc/optimistic"
	"github.com/azconc/azconc/optimistic/blobs"
)

type headersSetOptions struct {
	Blob       ref.Blob
	Set        map[string]string // by flag; an empty value removes the header
	Conditions optimistic.Conditions
	Update     flags.Update
}

// headerFields are the flags of headers set, and the field that each sets.
var headerFields = []struct {
	flag, name string
	field      func(*blobs.HTTPHeaders) *string
}{
	{"content-type", "Content-Type", func(h *blobs.HTTPHeaders) *string { return &h.ContentType }},
	{"content-encoding", "Content-Encoding", func(h *blobs.HTTPHeaders) *string { return &h.ContentEncoding }},
	{"content-language", "Content-Language", func(h *blobs.HTTPHeaders) *string { return &h.ContentLanguage }},
	{"content-disposition", "Content-Disposition", func(h *blobs.HTTPHeaders) *string { return &h.ContentDisposition }},
	{"content-md5", "Content-MD5, in base64,", func(h *blobs.HTTPHeaders) *string { return &h.ContentMD5 }},
	{"cache-control", "Cache-Control", func(h *blobs.HTTPHeaders) *string { return &h.CacheControl }},
}

func headersSetVerb() cli.Verb[headersSetOptions] {
	values := make([]string, len(headerFields))
	return cli.Verb[headersSetOptions]{
		Use:   "set <container/blob> --<header> <value>…",
		Short: "Set some of a blob's HTTP headers and keep the rest",
		Long: `Set some of a blob's HTTP headers and keep the rest. An empty value removes a header.

The service replaces all headers at once, so azconc reads them and writes them back on condition that the blob has not
changed; with --if-match a conflict is final. Headers have no room for an id: if a response is lost and the blob has changed
since, the change may be this write or another, and the exit code is 5. It is safe to set the headers again.`,
		Example: `  azconc blob headers set site/app.js --cache-control 'max-age=3600' --content-type text/javascript
  azconc blob headers set site/app.js --content-encoding ''`,
		Flags: func(opts *headersSetOptions, set *pflag.FlagSet) {
			for i, h := range headerFields {
				flags.Header(set, &values[i], h.flag, h.name+" to serve the blob with")
				flags.AllowEmpty(set, h.flag)
			}
			flags.MaxAttempts(set, &opts.Update.MaxAttempts)
			flags.WriteConditions(set, &opts.Conditions, flags.CondAll)
		},
		Resource: func(opts *headersSetOptions, arg string) (err error) {
			opts.Blob, err = ref.ParseWritable(arg)
			return err
		},
		Parse: func(opts *headersSetOptions, in cli.Input) error {
			opts.Set = map[string]string{}
			for i, h := range headerFields {
				if in.Flags.Changed(h.flag) {
					opts.Set[h.flag] = values[i]
				}
			}
			if len(opts.Set) == 0 {
				return fail.WithHint(fail.Usagef("no header is given"), "give a header, as in --content-type text/plain")
			}
			if sum, err := base64.StdEncoding.DecodeString(opts.Set["content-md5"]); err != nil || len(sum) != 0 && len(sum) != 16 {
				return fail.Usagef("--content-md5 is not an MD5 sum in base64")
			}
			return nil
		},
		Run: headersSetRun,
	}
}

func headersSetRun(ctx context.Context, f *cli.Factory, opts *headersSetOptions) error {
	client, err := f.Blob(opts.Blob)
	if err != nil {
		return err
	}
	r, err := optimistic.Update(ctx, blobs.NewHeaders(client), func(_ context.Context, headers *blobs.HTTPHeaders) error {
		for _, h := range headerFields {
			if value, ok := opts.Set[h.flag]; ok {
				*h.field(headers) = value
			}
		}
		return nil
	}, opts.Update.Options(opts.Conditions, f.Sending()))
	return f.PrintWrite(opts.Blob, "updated", r, change.UpdateHint(err, opts.Conditions, true))
}
