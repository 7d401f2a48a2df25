package cli

import (
	"context"
	"fmt"
	"io"
	"time"

	azservice "github.com/Azure/azure-sdk-for-go/sdk/storage/azblob/service"
	"github.com/spf13/cobra"
)

type containerListOptions struct {
	factory *Factory
	Prefix  string
	Max     int
}

func newContainerListCmd(f *Factory, runF func(*containerListOptions) error) *cobra.Command {
	opts := &containerListOptions{factory: f}
	cmd := &cobra.Command{
		Use:     "list",
		Short:   "List the account's containers",
		Args:    resourceArgs(),
		Example: "  azconc container list --prefix job",
		RunE: func(cmd *cobra.Command, _ []string) error {
			if opts.Max < 0 {
				return usagef("--max %d is negative", opts.Max)
			}
			if runF != nil {
				return runF(opts)
			}
			return containerListRun(cmd.Context(), opts)
		},
	}
	cmd.Flags().StringVar(&opts.Prefix, "prefix", "", "only names that begin with this `text`")
	allowEmpty(cmd, "prefix")
	cmd.Flags().IntVar(&opts.Max, "max", 0, "stop after `n` containers; 0 is all")
	return cmd
}

type containerListResult struct {
	Outcome    string          `json:"outcome"`
	Containers []containerItem `json:"containers"`
	Truncated  bool            `json:"truncated"`

	wide bool
}

type containerItem struct {
	Name         string    `json:"name"`
	ETag         string    `json:"etag"`
	LastModified time.Time `json:"last_modified"`
	LeaseState   string    `json:"lease_state,omitempty"`
}

func (r containerListResult) text(w io.Writer) {
	for _, c := range r.Containers {
		if r.wide {
			fmt.Fprintf(w, "%s  %-9s  %s\n", timeText(c.LastModified), c.LeaseState, c.Name)
		} else {
			fmt.Fprintln(w, c.Name)
		}
	}
}

func containerListRun(ctx context.Context, opts *containerListOptions) error {
	client, err := opts.factory.BlobService()
	if err != nil {
		return err
	}
	r := containerListResult{Outcome: "listed", Containers: []containerItem{}, wide: opts.factory.OutTerminal}
	pages := client.NewListContainersPager(&azservice.ListContainersOptions{Prefix: optional(opts.Prefix)})
	for pages.More() {
		page, err := pages.NextPage(ctx)
		if err != nil {
			return err
		}
		for _, c := range page.ContainerItems {
			if opts.Max > 0 && len(r.Containers) == opts.Max {
				r.Truncated = true
				return opts.factory.Print(r)
			}
			item := containerItem{Name: deref(c.Name)}
			if p := c.Properties; p != nil {
				item.ETag, item.LastModified, item.LeaseState = quoted(deref(p.ETag)), deref(p.LastModified).UTC(), string(deref(p.LeaseState))
			}
			r.Containers = append(r.Containers, item)
		}
	}
	return opts.factory.Print(r)
}
