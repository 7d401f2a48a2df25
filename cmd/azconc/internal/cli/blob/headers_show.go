package blob

import (
	"context"
	"encoding/base64"
	"io"

	"github.com/spf13/pflag"

	"github.com/azconc/azconc/cmd/azconc/internal/cli"
	"github.com/azconc/azconc/cmd/azconc/internal/cli/flags"
	"github.com/azconc/azconc/cmd/azconc/internal/cli/show"
	"github.com/azconc/azconc/pkg/ptr"
)

func headersShowVerb() cli.Verb[readOptions] {
	return cli.Verb[readOptions]{
		Use:     "show <container/blob>",
		Short:   "Show the HTTP headers that a blob is served with",
		Example: "  azconc blob headers show site/app.js -o json",
		Flags: func(opts *readOptions, set *pflag.FlagSet) {
			opts.add(set, flags.CondAll)
		},
		Parse: (*readOptions).parse,
		Run:   headersShowRun,
	}
}

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

func headersShowRun(ctx context.Context, f *cli.Factory, opts *readOptions) error {
	p, err := opts.properties(ctx, f)
	if err != nil {
		return err
	}
	return f.Print(headersResult{
		Outcome: "found", Resource: opts.Blob.String(), ETag: string(ptr.Value(p.ETag)), Type: ptr.Value(p.ContentType), Encoding: ptr.Value(p.ContentEncoding),
		Language: ptr.Value(p.ContentLanguage), Disposition: ptr.Value(p.ContentDisposition), MD5: base64.StdEncoding.EncodeToString(p.ContentMD5), Cache: ptr.Value(p.CacheControl),
	})
}
