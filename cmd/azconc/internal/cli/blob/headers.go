package blob

import (
	"context"
	"encoding/base64"
	"io"

	"github.com/Azure/azure-sdk-for-go/sdk/storage/azblob/blob"
	"github.com/spf13/cobra"

	"github.com/azconc/azconc/cmd/azconc/internal/cli"
	"github.com/azconc/azconc/cmd/azconc/internal/cli/change"
	"github.com/azconc/azconc/cmd/azconc/internal/cli/fail"
	"github.com/azconc/azconc/cmd/azconc/internal/cli/flags"
	"github.com/azconc/azconc/cmd/azconc/internal/cli/ref"
	"github.com/azconc/azconc/cmd/azconc/internal/cli/show"
	"github.com/azconc/azconc/optimistic"
	"github.com/azconc/azconc/optimistic/blobs"
	"github.com/azconc/azconc/pkg/ptr"
)

type headersResult struct {
	Outcome     string `json:"outcome"`
	Resource    string `json:"resource"`
	ETag        string `json:"etag"`
	Type        string `json:"content_type"`
	Encoding    string `json:"content_encoding"`
	Language    string `json:"content_language"`
	Disposition string `json:"content_disposition"`
	MD5         string `json:"content_md5"`
	Cache       string `json:"cache_control"`
}

func (r headersResult) Text(w io.Writer) {
	show.Fields(w, "content type", r.Type, "content encoding", r.Encoding, "content language", r.Language,
		"content disposition", r.Disposition, "content md5", r.MD5, "cache control", r.Cache)
}

func newHeadersShowCmd(f *cli.Factory) *cobra.Command {
	return properties(f, &cobra.Command{
		Use:     "show <container/blob>",
		Short:   "Show the HTTP headers that a blob is served with",
		Example: "  azconc blob headers show site/app.js -o json",
	}, func(on ref.Blob, p blob.GetPropertiesResponse) cli.Result {
		return headersResult{
			Outcome: "found", Resource: on.String(), ETag: string(ptr.Value(p.ETag)), Type: ptr.Value(p.ContentType), Encoding: ptr.Value(p.ContentEncoding),
			Language: ptr.Value(p.ContentLanguage), Disposition: ptr.Value(p.ContentDisposition), MD5: base64.StdEncoding.EncodeToString(p.ContentMD5), Cache: ptr.Value(p.CacheControl),
		}
	})
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

func newHeadersSetCmd(f *cli.Factory) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "set <container/blob> --<header> <value>…",
		Short: "Set some of a blob's HTTP headers and keep the rest",
		Long: `Set some of a blob's HTTP headers and keep the rest. An empty value removes a header.

The service replaces all headers at once, so azconc reads them and writes them back on condition that the blob has not
changed; with --if-match a conflict is final. Headers have no room for an id: if a response is lost and the blob has changed
since, the change may be this write or another, and the exit code is 5. It is safe to set the headers again.`,
		Example: `  azconc blob headers set site/app.js --cache-control 'max-age=3600' --content-type text/javascript
  azconc blob headers set site/app.js --content-encoding ''`,
	}
	set := cmd.Flags()
	values := make([]string, len(headerFields))
	for i, h := range headerFields {
		flags.Header(set, &values[i], h.flag, h.name+" to serve the blob with")
		flags.AllowEmpty(set, h.flag)
	}
	var update flags.Update
	var conditions optimistic.Conditions
	flags.MaxAttempts(set, &update.MaxAttempts)
	flags.WriteConditions(set, &conditions, flags.CondAll)
	given := map[string]string{} // by flag; an empty value removes the header
	parse := func(arg string) (ref.Blob, error) {
		for i, h := range headerFields {
			if set.Changed(h.flag) {
				given[h.flag] = values[i]
			}
		}
		on, err := ref.ParseWritable(arg)
		if err != nil {
			return on, err
		}
		if len(given) == 0 {
			return on, fail.WithHint(fail.Usagef("no header is given"), "give a header, as in --content-type text/plain")
		}
		if sum, err := base64.StdEncoding.DecodeString(given["content-md5"]); err != nil || len(sum) != 0 && len(sum) != 16 {
			return on, fail.Usagef("--content-md5 is not an MD5 sum in base64")
		}
		return on, nil
	}
	return cli.On(f, cmd, parse, f.Blob, func(ctx context.Context, on ref.Blob, client *blob.Client) (cli.Result, error) {
		r, err := optimistic.Update(ctx, blobs.NewHeaders(client), func(_ context.Context, headers *blobs.HTTPHeaders) error {
			for _, h := range headerFields {
				if value, ok := given[h.flag]; ok {
					*h.field(headers) = value
				}
			}
			return nil
		}, update.Options(conditions, f.Sending()))
		return cli.Written(on, "updated", r, change.UpdateHint(err, conditions, true))
	})
}
