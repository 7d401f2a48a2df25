package cli

import (
	"context"
	"fmt"
	"io"
	"maps"
	"slices"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/storage/azblob/blob"
	"github.com/spf13/cobra"
)

func newBlobShowCmd(f *Factory, runF func(*blobReadOptions) error) *cobra.Command {
	cmd := newBlobReadCmd(f, runF, condAll, blobShowRun)
	cmd.Short = "Show a blob's ETag, properties and metadata"
	cmd.Example = `  azconc blob show jobs/state.json
  etag=$(azconc blob show jobs/state.json -o json | jq -r .etag)`
	return cmd
}

type blobShowResult struct {
	Outcome         string            `json:"outcome"`
	Resource        string            `json:"resource"`
	ETag            string            `json:"etag"`
	LastModified    time.Time         `json:"last_modified"`
	Created         time.Time         `json:"creation_time"`
	Type            string            `json:"type"`
	Size            int64             `json:"size"`
	ContentType     string            `json:"content_type,omitempty"`
	ContentEncoding string            `json:"content_encoding,omitempty"`
	CacheControl    string            `json:"cache_control,omitempty"`
	Tier            string            `json:"tier,omitempty"`
	LeaseState      string            `json:"lease_state,omitempty"`
	LeaseStatus     string            `json:"lease_status,omitempty"`
	SequenceNumber  *int64            `json:"sequence_number,omitempty"`
	TagCount        int64             `json:"tag_count"`
	Metadata        map[string]string `json:"metadata"`
}

func (r blobShowResult) text(w io.Writer) {
	fields := []string{
		"blob", r.Resource, "etag", r.ETag, "last modified", timeText(r.LastModified), "created", timeText(r.Created),
		"type", r.Type, "size", fmt.Sprint(r.Size), "content type", r.ContentType, "content encoding", r.ContentEncoding,
		"cache control", r.CacheControl, "tier", r.Tier, "lease", r.LeaseState,
	}
	for _, name := range slices.Sorted(maps.Keys(r.Metadata)) {
		fields = append(fields, "metadata "+name, r.Metadata[name])
	}
	printFields(w, fields...)
}

func blobShowRun(ctx context.Context, opts *blobReadOptions) error {
	client, err := opts.factory.Blob(opts.Blob)
	if err != nil {
		return err
	}
	p, err := client.GetProperties(ctx, &blob.GetPropertiesOptions{AccessConditions: blobAccess(opts.Conditions)})
	if err != nil {
		return err
	}
	return opts.factory.Print(blobShowResult{
		Outcome: "found", Resource: opts.Blob.String(), ETag: string(deref(p.ETag)), LastModified: deref(p.LastModified).UTC(),
		Created: deref(p.CreationTime).UTC(), Type: string(deref(p.BlobType)), Size: deref(p.ContentLength),
		ContentType: deref(p.ContentType), ContentEncoding: deref(p.ContentEncoding), CacheControl: deref(p.CacheControl),
		Tier: deref(p.AccessTier), LeaseState: string(deref(p.LeaseState)), LeaseStatus: string(deref(p.LeaseStatus)),
		SequenceNumber: p.BlobSequenceNumber, TagCount: deref(p.TagCount), Metadata: ownMetadata(p.Metadata),
	})
}
