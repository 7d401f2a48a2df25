package cli

import (
	"context"
	"fmt"
	"io"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/storage/azblob/container"
	"github.com/spf13/cobra"
)

type blobListOptions struct {
	factory   *Factory
	Container blobRef
	Prefix    string
	Max       int
	Snapshots bool
}

func newBlobListCmd(f *Factory, runF func(*blobListOptions) error) *cobra.Command {
	opts := &blobListOptions{factory: f}
	cmd := &cobra.Command{
		Use:   "list <container>",
		Short: "List the blobs of a container",
		Args:  resourceArgs("<container>"),
		Example: `  azconc blob list jobs --prefix 2026/
  azconc blob list jobs -o json | jq -r '.blobs[] | .etag + " " + .name'`,
		RunE: func(cmd *cobra.Command, args []string) (err error) {
			if opts.Container, err = parseContainer(args[0]); err != nil {
				return err
			}
			if opts.Max < 0 {
				return usagef("--max %d is negative", opts.Max)
			}
			if runF != nil {
				return runF(opts)
			}
			return blobListRun(cmd.Context(), opts)
		},
	}
	cmd.Flags().StringVar(&opts.Prefix, "prefix", "", "only names that begin with this `text`")
	allowEmpty(cmd, "prefix")
	cmd.Flags().IntVar(&opts.Max, "max", 0, "stop after `n` blobs; 0 is all")
	cmd.Flags().BoolVar(&opts.Snapshots, "snapshots", false, "list snapshots too")
	return cmd
}

type blobListResult struct {
	Outcome   string     `json:"outcome"`
	Container string     `json:"resource"`
	Blobs     []blobItem `json:"blobs"`
	Truncated bool       `json:"truncated"`

	wide bool
}

type blobItem struct {
	Name         string    `json:"name"`
	Snapshot     string    `json:"snapshot,omitempty"`
	ETag         string    `json:"etag"`
	LastModified time.Time `json:"last_modified"`
	Size         int64     `json:"size"`
	Type         string    `json:"type"`
	LeaseState   string    `json:"lease_state,omitempty"`
}

func (r blobListResult) text(w io.Writer) {
	for _, b := range r.Blobs {
		name := b.Name
		if b.Snapshot != "" {
			name += "?snapshot=" + b.Snapshot
		}
		if r.wide {
			fmt.Fprintf(w, "%s  %10s  %-9s  %s\n", timeText(b.LastModified), byteCount(b.Size), b.LeaseState, name)
		} else {
			fmt.Fprintln(w, name)
		}
	}
}

func blobListRun(ctx context.Context, opts *blobListOptions) error {
	client, err := opts.factory.Container(opts.Container)
	if err != nil {
		return err
	}
	r := blobListResult{Outcome: "listed", Container: opts.Container.String(), Blobs: []blobItem{}, wide: opts.factory.OutTerminal}
	pages := client.NewListBlobsFlatPager(&container.ListBlobsFlatOptions{
		Prefix: optional(opts.Prefix), Include: container.ListBlobsInclude{Snapshots: opts.Snapshots},
	})
	for pages.More() {
		page, err := pages.NextPage(ctx)
		if err != nil {
			return err
		}
		for _, b := range page.Segment.BlobItems {
			if opts.Max > 0 && len(r.Blobs) == opts.Max {
				r.Truncated = true
				return opts.factory.Print(r)
			}
			item := blobItem{Name: deref(b.Name), Snapshot: deref(b.Snapshot)}
			if p := b.Properties; p != nil {
				item.ETag, item.LastModified, item.Size = quoted(deref(p.ETag)), deref(p.LastModified).UTC(), deref(p.ContentLength)
				item.Type, item.LeaseState = string(deref(p.BlobType)), string(deref(p.LeaseState))
			}
			r.Blobs = append(r.Blobs, item)
		}
	}
	return opts.factory.Print(r)
}
