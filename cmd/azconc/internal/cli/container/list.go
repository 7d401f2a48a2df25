package container

import (
	"context"
	"fmt"
	"io"
	"time"

	azservice "github.com/Azure/azure-sdk-for-go/sdk/storage/azblob/service"
	"github.com/spf13/pflag"

	"github.com/azconc/azconc/cmd/azconc/internal/cli"
	"github.com/azconc/azconc/cmd/azconc/internal/cli/flags"
	"github.com/azconc/azconc/cmd/azconc/internal/cli/show"
	"github.com/azconc/azconc/pkg/ptr"
)

type listOptions struct {
	Prefix string
	Max    int
}

func listVerb() cli.Verb[listOptions] {
	return cli.Verb[listOptions]{
		Use:     "list",
		Short:   "List the account's containers",
		Example: "  azconc container list --prefix job",
		Flags: func(opts *listOptions, set *pflag.FlagSet) {
			flags.Listing(set, &opts.Prefix, &opts.Max, "containers")
		},
		Run: listRun,
	}
}

type listResult struct {
	Outcome    string `json:"outcome"`
	Containers []item `json:"containers"`
	Truncated  bool   `json:"truncated"`

	wide bool
}

type item struct {
	Name         string    `json:"name"`
	ETag         string    `json:"etag"`
	LastModified time.Time `json:"last_modified"`
	LeaseState   string    `json:"lease_state,omitempty"`
}

func (r listResult) Text(w io.Writer) {
	for _, c := range r.Containers {
		if r.wide {
			fmt.Fprintf(w, "%s  %-9s  %s\n", show.Time(c.LastModified), c.LeaseState, c.Name)
		} else {
			fmt.Fprintln(w, c.Name)
		}
	}
}

func listRun(ctx context.Context, f *cli.Factory, opts *listOptions) error {
	client, err := f.BlobService()
	if err != nil {
		return err
	}
	r := listResult{Outcome: "listed", Containers: []item{}, wide: f.OutTerminal}
	pages := client.NewListContainersPager(&azservice.ListContainersOptions{Prefix: ptr.Optional(opts.Prefix)})
	for pages.More() {
		page, err := pages.NextPage(ctx)
		if err != nil {
			return err
		}
		for _, c := range page.ContainerItems {
			if opts.Max > 0 && len(r.Containers) == opts.Max {
				r.Truncated = true
				return f.Print(r)
			}
			item := item{Name: ptr.Value(c.Name)}
			if p := c.Properties; p != nil {
				item.ETag, item.LastModified, item.LeaseState = flags.Quoted(ptr.Value(p.ETag)), ptr.Value(p.LastModified).UTC(), string(ptr.Value(p.LeaseState))
			}
			r.Containers = append(r.Containers, item)
		}
	}
	return f.Print(r)
}
