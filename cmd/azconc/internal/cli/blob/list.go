package blob

import (
	"context"
	"fmt"
	"io"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/storage/azblob/container"
	"github.com/spf13/pflag"

	"github.com/azconc/azconc/cmd/azconc/internal/cli"
	"github.com/azconc/azconc/cmd/azconc/internal/cli/flags"
	"github.com/azconc/azconc/cmd/azconc/internal/cli/ref"
	"github.com/azconc/azconc/cmd/azconc/internal/cli/show"
	"github.com/azconc/azconc/pkg/ptr"
)

type listOptions struct {
	Container ref.Blob
	Prefix    string
	Max       int
	Snapshots bool
}

func listVerb() cli.Verb[listOptions] {
	return cli.Verb[listOptions]{
		Use:   "list <container>",
		Short: "List the blobs of a container",
		Example: `  azconc blob list jobs --prefix 2026/
  azconc blob list jobs -o json | jq -r '.blobs[] | .etag + " " + .name'`,
		Flags: func(opts *listOptions, set *pflag.FlagSet) {
			flags.Listing(set, &opts.Prefix, &opts.Max, "blobs")
			set.BoolVar(&opts.Snapshots, "snapshots", false, "list snapshots too")
		},
		Resource: func(opts *listOptions, arg string) (err error) {
			opts.Container, err = ref.ParseContainer(arg)
			return err
		},
		Run: listRun,
	}
}

type listResult struct {
	Outcome   string `json:"outcome"`
	Container string `json:"resource"`
	Blobs     []item `json:"blobs"`
	Truncated bool   `json:"truncated"`

	wide bool
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

func (r listResult) Text(w io.Writer) {
	for _, b := range r.Blobs {
		name := show.Line(b.Name) // with a line break it would name two blobs
		if b.Snapshot != "" {
			name += "?snapshot=" + b.Snapshot
		}
		if r.wide {
			fmt.Fprintf(w, "%s  %10s  %-9s  %s\n", show.Time(b.LastModified), show.Bytes(b.Size), b.LeaseState, name)
		} else {
			fmt.Fprintln(w, name)
		}
	}
}

func listRun(ctx context.Context, f *cli.Factory, opts *listOptions) error {
	client, err := f.Container(opts.Container)
	if err != nil {
		return err
	}
	r := listResult{Outcome: "listed", Container: opts.Container.String(), Blobs: []item{}, wide: f.OutTerminal}
	pages := client.NewListBlobsFlatPager(&container.ListBlobsFlatOptions{
		Prefix: ptr.Optional(opts.Prefix), Include: container.ListBlobsInclude{Snapshots: opts.Snapshots},
	})
	for pages.More() {
		page, err := pages.NextPage(ctx)
		if err != nil {
			return err
		}
		for _, b := range page.Segment.BlobItems {
			if opts.Max > 0 && len(r.Blobs) == opts.Max {
				r.Truncated = true
				return f.Print(r)
			}
			item := item{Name: ptr.Value(b.Name), Snapshot: ptr.Value(b.Snapshot)}
			if p := b.Properties; p != nil {
				item.ETag, item.LastModified, item.Size = flags.Quoted(ptr.Value(p.ETag)), ptr.Value(p.LastModified).UTC(), ptr.Value(p.ContentLength)
				item.Type, item.LeaseState = string(ptr.Value(p.BlobType)), string(ptr.Value(p.LeaseState))
			}
			r.Blobs = append(r.Blobs, item)
		}
	}
	return f.Print(r)
}
