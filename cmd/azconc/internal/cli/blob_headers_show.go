package cli

import (
	"context"
	"encoding/base64"
	"io"

	"github.com/Azure/azure-sdk-for-go/sdk/storage/azblob/blob"
	"github.com/spf13/cobra"
)

func newBlobHeadersShowCmd(f *Factory, runF func(*blobReadOptions) error) *cobra.Command {
	cmd := newBlobReadCmd(f, runF, condAll, blobHeadersShowRun)
	cmd.Short, cmd.Example = "Show the HTTP headers that a blob is served with", "  azconc blob headers show site/app.js -o json"
	return cmd
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

func (r headersResult) text(w io.Writer) {
	printFields(w, "content type", r.Type, "content encoding", r.Encoding, "content language", r.Language,
		"content disposition", r.Disposition, "content md5", r.MD5, "cache control", r.Cache)
}

func blobHeadersShowRun(ctx context.Context, opts *blobReadOptions) error {
	client, err := opts.factory.Blob(opts.Blob)
	if err != nil {
		return err
	}
	p, err := client.GetProperties(ctx, &blob.GetPropertiesOptions{AccessConditions: blobAccess(opts.Conditions)})
	if err != nil {
		return err
	}
	return opts.factory.Print(headersResult{
		Outcome: "found", Resource: opts.Blob.String(), ETag: string(deref(p.ETag)), Type: deref(p.ContentType), Encoding: deref(p.ContentEncoding),
		Language: deref(p.ContentLanguage), Disposition: deref(p.ContentDisposition), MD5: base64.StdEncoding.EncodeToString(p.ContentMD5), Cache: deref(p.CacheControl),
	})
}
