package blob

import (
	"context"
	"fmt"
	"io"
	"maps"
	"slices"
	"time"

	"github.com/spf13/pflag"

	"github.com/azconc/azconc/cmd/azconc/internal/cli"
	"github.com/azconc/azconc/cmd/azconc/internal/cli/flags"
	"github.com/azconc/azconc/cmd/azconc/internal/cli/show"
	"github.com/azconc/azconc/pkg/ptr"
)

func showVerb() cli.Verb[readOptions] {
	return cli.Verb[readOptions]{
		Use:   "show <container/blob>",
		Short: "Show a blob's ETag, properties and metadata",
		Example: `  azconc blob show jobs/state.json
  etag=$(azconc blob show jobs/state.json -o json | jq -r .etag)`,
		Flags: func(opts *readOptions, set *pflag.FlagSet) {
			opts.add(set, flags.CondAll)
		},
		Parse: (*readOptions).parse,
		Run:   showRun,
	}
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
		"cache control", r.CacheControl, "tier", r.Tier, "lease", r.LeaseState,
	}
	for _, name := range slices.Sorted(maps.Keys(r.Metadata)) {
		fields = append(fields, "metadata "+name, r.Metadata[name])
	}
	show.Fields(w, fields...)
}

func showRun(ctx context.Context, f *cli.Factory, opts *readOptions) error {
	p, err := opts.properties(ctx, f)
	if err != nil {
		return err
	}
	return f.Print(showResult{
		Outcome: "found", Resource: opts.Blob.String(), ETag: string(ptr.Value(p.ETag)), LastModified: ptr.Value(p.LastModified).UTC(),
		Created: ptr.Value(p.CreationTime).UTC(), Type: string(ptr.Value(p.BlobType)), Size: ptr.Value(p.ContentLength),
		ContentType: ptr.Value(p.ContentType), ContentEncoding: ptr.Value(p.ContentEncoding), CacheControl: ptr.Value(p.CacheControl),
		Tier: ptr.Value(p.AccessTier), LeaseState: string(ptr.Value(p.LeaseState)), LeaseStatus: string(ptr.Value(p.LeaseStatus)),
		SequenceNumber: p.BlobSequenceNumber, TagCount: ptr.Value(p.TagCount), Metadata: cli.OwnMetadata(p.Metadata),
	})
}
