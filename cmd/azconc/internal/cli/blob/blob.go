// Package blob has the verbs of azconc blob: content, metadata, headers, tags, blocks, pages, snapshots and copies.
package blob

import (
	"context"
	"encoding/base64"
	"fmt"
	"io"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/storage/azblob/blob"
	"github.com/Azure/azure-sdk-for-go/sdk/storage/azblob/container"
	"github.com/spf13/cobra"

	"github.com/azconc/azconc/cmd/azconc/internal/cli"
	"github.com/azconc/azconc/cmd/azconc/internal/cli/flags"
	"github.com/azconc/azconc/cmd/azconc/internal/cli/lease"
	"github.com/azconc/azconc/cmd/azconc/internal/cli/ref"
	"github.com/azconc/azconc/cmd/azconc/internal/cli/show"
	"github.com/azconc/azconc/optimistic"
	"github.com/azconc/azconc/pkg/ptr"
)

// properties makes cmd a verb that shows a part of a blob's properties, with one request.
func properties(f *cli.Factory, cmd *cobra.Command, part func(ref.Blob, blob.GetPropertiesResponse) cli.Result) *cobra.Command {
	var conditions optimistic.Conditions
	flags.ReadConditions(cmd.Flags(), &conditions, flags.CondAll)
	return cli.On(f, cmd, ref.ParseBlob, f.Blob, func(ctx context.Context, on ref.Blob, client *blob.Client) (cli.Result, error) {
		p, err := client.GetProperties(ctx, &blob.GetPropertiesOptions{AccessConditions: flags.BlobAccess(conditions)})
		return part(on, p), err
	})
}

type showResult struct {
	Outcome         string            `json:"outcome"`
	Resource        string            `json:"resource"`
	ETag            string            `json:"etag"`
	LastModified    time.Time         `json:"last_modified"`
	Created         time.Time         `json:"creation_time"`
	Type            string            `json:"type"`
	Size            int64             `json:"size"`
	ContentType     string            `json:"content_type,omitempty"`
	ContentEncoding string            `json:"content_encoding,omitempty"`
	ContentLanguage string            `json:"content_language,omitempty"`
	Disposition     string            `json:"content_disposition,omitempty"`
	ContentMD5      string            `json:"content_md5,omitempty"`
	CacheControl    string            `json:"cache_control,omitempty"`
	Tier            string            `json:"tier,omitempty"`
	LeaseState      string            `json:"lease_state,omitempty"`
	LeaseStatus     string            `json:"lease_status,omitempty"`
	SequenceNumber  *int64            `json:"sequence_number,omitempty"`
	TagCount        int64             `json:"tag_count"`
	Metadata        map[string]string `json:"metadata"`
}

func (r showResult) Text(w io.Writer) {
	fields := []string{
		"blob", r.Resource, "etag", r.ETag, "last modified", show.Time(r.LastModified), "created", show.Time(r.Created),
		"type", r.Type, "size", fmt.Sprint(r.Size), "content type", r.ContentType, "content encoding", r.ContentEncoding,
		"content language", r.ContentLanguage, "content disposition", r.Disposition, "content md5", r.ContentMD5, "cache control", r.CacheControl, "tier", r.Tier, "lease", r.LeaseState,
	}
	show.Fields(w, show.WithMetadata(fields, r.Metadata)...)
}

func newShowCmd(f *cli.Factory) *cobra.Command {
	return properties(f, &cobra.Command{
		Use:   "show <container/blob>",
		Short: "Show a blob's ETag, properties and metadata",
		Example: `  azconc blob show jobs/state.json
  etag=$(azconc blob show jobs/state.json -o json | jq -r .etag)`,
	}, func(on ref.Blob, p blob.GetPropertiesResponse) cli.Result {
		return showResult{
			Outcome: "found", Resource: on.String(), ETag: string(ptr.Value(p.ETag)), LastModified: ptr.Value(p.LastModified).UTC(),
			Created: ptr.Value(p.CreationTime).UTC(), Type: string(ptr.Value(p.BlobType)), Size: ptr.Value(p.ContentLength),
			ContentType: ptr.Value(p.ContentType), ContentEncoding: ptr.Value(p.ContentEncoding), ContentLanguage: ptr.Value(p.ContentLanguage),
			Disposition: ptr.Value(p.ContentDisposition), ContentMD5: base64.StdEncoding.EncodeToString(p.ContentMD5), CacheControl: ptr.Value(p.CacheControl),
			Tier: ptr.Value(p.AccessTier), LeaseState: string(ptr.Value(p.LeaseState)), LeaseStatus: string(ptr.Value(p.LeaseStatus)),
			SequenceNumber: p.BlobSequenceNumber, TagCount: ptr.Value(p.TagCount), Metadata: cli.OwnMetadata(p.Metadata),
		}
	})
}

type listResult struct {
	Outcome   string `json:"outcome"`
	Container string `json:"resource"`
	Blobs     []item `json:"blobs"`
	Truncated bool   `json:"truncated"`
}

type item struct {
	Name         string    `json:"name"`
	Snapshot     string    `json:"snapshot,omitempty"`
	ETag         string    `json:"etag"`
	LastModified time.Time `json:"last_modified"`
	Size         int64     `json:"size"`
	Type         string    `json:"type"`
	LeaseState   string    `json:"lease_state,omitempty"`
}

func (i item) String() string {
	if i.Snapshot != "" {
		return i.Name + "?snapshot=" + i.Snapshot
	}
	return i.Name
}

func (r listResult) Text(w io.Writer) { cli.PrintLines(w, r.Blobs) }

func newListCmd(f *cli.Factory) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "list <container>",
		Short: "List the blobs of a container",
		Example: `  azconc blob list jobs --prefix 2026/
  azconc blob list jobs -o json | jq -r '.blobs[] | .etag + " " + .name'`,
	}
	prefix, most := flags.Listing(cmd.Flags(), "blobs")
	snapshots := cmd.Flags().Bool("snapshots", false, "list snapshots too")
	return cli.On(f, cmd, ref.ParseContainer, f.Container, func(ctx context.Context, on ref.Blob, client *container.Client) (cli.Result, error) {
		pages := client.NewListBlobsFlatPager(&container.ListBlobsFlatOptions{
			Prefix: ptr.Optional(*prefix), Include: container.ListBlobsInclude{Snapshots: *snapshots},
		})
		found, more, err := cli.List(ctx, pages, *most, func(page container.ListBlobsFlatResponse) (items []item) {
			for _, b := range page.Segment.BlobItems {
				item := item{Name: ptr.Value(b.Name), Snapshot: ptr.Value(b.Snapshot)}
				if p := b.Properties; p != nil {
					item.ETag, item.LastModified, item.Size = flags.Quoted(ptr.Value(p.ETag)), ptr.Value(p.LastModified).UTC(), ptr.Value(p.ContentLength)
					item.Type, item.LeaseState = string(ptr.Value(p.BlobType)), string(ptr.Value(p.LeaseState))
				}
				items = append(items, item)
			}
			return items
		})
		return listResult{Outcome: "listed", Container: on.String(), Blobs: found, Truncated: more}, err
	})
}

func NewCmd(f *cli.Factory) *cobra.Command {
	return cli.NewGroupCmd("blob", "Read, write and change blobs, with conditions on every write",
		newPutCmd(f),
		newGetCmd(f),
		newListCmd(f),
		newShowCmd(f),
		newUpdateCmd(f),
		newEditCmd(f),
		newDeleteCmd(f),
		lease.NewCmd(f, "blob"),
		newMetadataCmd(f),
		cli.NewGroupCmd("headers", "Change the HTTP headers that a blob is served with", newHeadersSetCmd(f)),
		newTagsCmd(f),
		newSnapshotCmd(f),
		newCopyCmd(f),
		newAbortCopyCmd(f),
		newAppendCmd(f),
		newRecordsCmd(f),
		newBlockCmd(f),
		newPageCmd(f),
	)
}
