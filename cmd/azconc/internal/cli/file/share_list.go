package file

import (
	"context"
	"fmt"
	"io"
	"time"

	azfiles "github.com/Azure/azure-sdk-for-go/sdk/storage/azfile/service"
	"github.com/spf13/pflag"

	"github.com/azconc/azconc/cmd/azconc/internal/cli"
	"github.com/azconc/azconc/cmd/azconc/internal/cli/flags"
	"github.com/azconc/azconc/cmd/azconc/internal/cli/lease"
	"github.com/azconc/azconc/cmd/azconc/internal/cli/show"
	"github.com/azconc/azconc/pkg/ptr"
)

type shareListOptions struct {
	Prefix string
	Max    int
}

func shareListVerb() cli.Verb[shareListOptions] {
	return cli.Verb[shareListOptions]{
		Use:     "list",
		Short:   "List the account's shares",
		Example: "  azconc share list --prefix rep",
		Flags: func(opts *shareListOptions, set *pflag.FlagSet) {
			flags.Listing(set, &opts.Prefix, &opts.Max, "shares")
		},
		Run: shareListRun,
	}
}

type shareListResult struct {
	Outcome   string      `json:"outcome"`
	Shares    []shareItem `json:"shares"`
	Truncated bool        `json:"truncated"`

	wide bool
}

type shareItem struct {
	Name         string    `json:"name"`
	ETag         string    `json:"etag"`
	LastModified time.Time `json:"last_modified"`
	LeaseState   string    `json:"lease_state,omitempty"`
	QuotaGiB     int32     `json:"quota_gib,omitempty"`
}

func (r shareListResult) Text(w io.Writer) {
	for _, s := range r.Shares {
		if r.wide {
			fmt.Fprintf(w, "%s  %-9s  %s\n", show.Time(s.LastModified), s.LeaseState, s.Name)
		} else {
			fmt.Fprintln(w, s.Name)
		}
	}
}

func shareListRun(ctx context.Context, f *cli.Factory, opts *shareListOptions) error {
	service, err := f.FileService()
	if err != nil {
		return err
	}
	r := shareListResult{Outcome: "listed", Shares: []shareItem{}, wide: f.OutTerminal}
	pages := service.NewListSharesPager(&azfiles.ListSharesOptions{Prefix: ptr.Optional(opts.Prefix)})
	for pages.More() {
		page, err := pages.NextPage(ctx)
		if err != nil {
			return err
		}
		for _, s := range page.Shares {
			if opts.Max > 0 && len(r.Shares) == opts.Max {
				r.Truncated = true
				return f.Print(r)
			}
			item := shareItem{Name: ptr.Value(s.Name)}
			if p := s.Properties; p != nil {
				item.ETag, item.LastModified = flags.Quoted(ptr.Value(p.ETag)), ptr.Value(p.LastModified).UTC()
				item.LeaseState, item.QuotaGiB = lease.Text(p.LeaseState), ptr.Value(p.Quota)
			}
			r.Shares = append(r.Shares, item)
		}
	}
	return f.Print(r)
}
