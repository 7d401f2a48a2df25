package file

import (
	"context"
	"io"
	"time"

	azfiles "github.com/Azure/azure-sdk-for-go/sdk/storage/azfile/service"
	"github.com/Azure/azure-sdk-for-go/sdk/storage/azfile/share"
	"github.com/spf13/cobra"

	"github.com/azconc/azconc/cmd/azconc/internal/cli"
	"github.com/azconc/azconc/cmd/azconc/internal/cli/flags"
	"github.com/azconc/azconc/cmd/azconc/internal/cli/lease"
	"github.com/azconc/azconc/cmd/azconc/internal/cli/ref"
	"github.com/azconc/azconc/cmd/azconc/internal/cli/show"
	"github.com/azconc/azconc/pessimistic/files"
	"github.com/azconc/azconc/pkg/ptr"
)

func newShareCreateCmd(f *cli.Factory) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "create <share>",
		Short: "Create a share",
		Long: `Create a share. If it already exists, the exit code is 7. A share does not record who created it: if a response was lost
and the share exists then, the exit code is 5.`,
		Example: "  azconc share create reports",
	}
	return cli.On(f, cmd, ref.ParseShare, f.Share, func(ctx context.Context, on ref.File, client *share.Client) (cli.Result, error) {
		r, err := files.CreateShare(ctx, client, nil)
		done := f.Done("created", on.String(), r.Ambiguous)
		done.ETag = string(r.ETag)
		return done, err
	})
}

func newShareDeleteCmd(f *cli.Factory) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "delete <share> [--lease-id <id>]",
		Short: "Delete a share and everything in it",
		Long: `Delete a share and everything in it, even if clients have it open. A lease of the share prevents that unless its id is given;
leases of files in it do not. The name is free again only when the service has removed the share, at least 30 s later.`,
		Example: "  azconc share delete reports",
	}
	var leaseID string
	flags.LeaseID(cmd.Flags(), &leaseID, "`id` under which its lease is held")
	return cli.On(f, cmd, ref.ParseShare, f.Share, func(ctx context.Context, on ref.File, client *share.Client) (cli.Result, error) {
		r, err := files.DeleteShare(ctx, client, &files.DeleteShareOptions{LeaseID: leaseID})
		return f.Done("deleted", on.String(), r.Ambiguous), err
	})
}

type shareShowResult struct {
	Outcome      string            `json:"outcome"`
	Share        string            `json:"resource"`
	ETag         string            `json:"etag"`
	LastModified time.Time         `json:"last_modified"`
	LeaseState   string            `json:"lease_state,omitempty"`
	QuotaGiB     int32             `json:"quota_gib,omitempty"`
	Metadata     map[string]string `json:"metadata"`
}

func (r shareShowResult) Text(w io.Writer) {
	show.Fields(w, show.WithMetadata([]string{"share", r.Share, "etag", r.ETag, "last modified", show.Time(r.LastModified), "lease", r.LeaseState},
		r.Metadata)...)
}

func newShareShowCmd(f *cli.Factory) *cobra.Command {
	cmd := &cobra.Command{
		Use:     "show <share>",
		Short:   "Show a share's properties and metadata",
		Example: "  azconc share show reports -o json",
	}
	return cli.On(f, cmd, ref.ParseShare, f.Share, func(ctx context.Context, on ref.File, client *share.Client) (cli.Result, error) {
		p, err := client.GetProperties(ctx, nil)
		return shareShowResult{
			Outcome: "found", Share: on.String(), ETag: string(ptr.Value(p.ETag)), LastModified: ptr.Value(p.LastModified).UTC(),
			LeaseState: lease.Text(p.LeaseState), QuotaGiB: ptr.Value(p.Quota), Metadata: cli.OwnMetadata(p.Metadata),
		}, err
	})
}

type shareListResult struct {
	Outcome   string      `json:"outcome"`
	Shares    []shareItem `json:"shares"`
	Truncated bool        `json:"truncated"`
}

type shareItem struct {
	Name         string    `json:"name"`
	ETag         string    `json:"etag"`
	LastModified time.Time `json:"last_modified"`
	LeaseState   string    `json:"lease_state,omitempty"`
	QuotaGiB     int32     `json:"quota_gib,omitempty"`
}

func (i shareItem) String() string { return i.Name }

func (r shareListResult) Text(w io.Writer) { cli.PrintLines(w, r.Shares) }

func newShareListCmd(f *cli.Factory) *cobra.Command {
	cmd := &cobra.Command{
		Use:     "list",
		Short:   "List the account's shares",
		Example: "  azconc share list --prefix rep",
	}
	var prefix string
	var most int
	flags.Listing(cmd.Flags(), &prefix, &most, "shares")
	return cli.OnAccount(f, cmd, f.FileService, func(ctx context.Context, service *azfiles.Client) (cli.Result, error) {
		pages := service.NewListSharesPager(&azfiles.ListSharesOptions{Prefix: ptr.Optional(prefix)})
		found, more, err := cli.List(ctx, pages, most, func(page azfiles.ListSharesSegmentResponse) (items []shareItem) {
			for _, s := range page.Shares {
				item := shareItem{Name: ptr.Value(s.Name)}
				if p := s.Properties; p != nil {
					item.ETag, item.LastModified = flags.Quoted(ptr.Value(p.ETag)), ptr.Value(p.LastModified).UTC()
					item.LeaseState, item.QuotaGiB = lease.Text(p.LeaseState), ptr.Value(p.Quota)
				}
				items = append(items, item)
			}
			return items
		})
		return shareListResult{Outcome: "listed", Shares: found, Truncated: more}, err
	})
}
