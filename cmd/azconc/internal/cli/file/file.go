// Package file has the verbs of azconc file and azconc share.
package file

import (
	"context"
	"io"
	"maps"
	"strings"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/storage/azfile/file"
	azfiles "github.com/Azure/azure-sdk-for-go/sdk/storage/azfile/service"
	"github.com/Azure/azure-sdk-for-go/sdk/storage/azfile/share"
	"github.com/spf13/cobra"

	"github.com/azconc/azconc/cmd/azconc/internal/cli"
	"github.com/azconc/azconc/cmd/azconc/internal/cli/flags"
	"github.com/azconc/azconc/cmd/azconc/internal/cli/lease"
	"github.com/azconc/azconc/cmd/azconc/internal/cli/ref"
	"github.com/azconc/azconc/cmd/azconc/internal/cli/show"
	"github.com/azconc/azconc/pessimistic/files"
	pkglease "github.com/azconc/azconc/pkg/lease"
	"github.com/azconc/azconc/pkg/ptr"
	"github.com/azconc/azconc/pkg/retry"
)

func NewCmd(f *cli.Factory) *cobra.Command {
	return cli.NewGroupCmd("file", "Read and write Azure Files alongside SMB clients",
		newPutCmd(f),
		newGetCmd(f),
		newShowCmd(f),
		newListCmd(f),
		newUpdateCmd(f),
		newDeleteCmd(f),
		newWaitCmd(f),
		lease.NewCmd(f, "file"),
		cli.NewGroupCmd("handles", "List and close the handles of SMB clients",
			newHandlesListCmd(f),
			newHandlesCloseCmd(f),
		),
	)
}

func NewShareCmd(f *cli.Factory) *cobra.Command {
	return cli.NewGroupCmd("share", "Create, delete, list and lease shares",
		newShareCreateCmd(f),
		newShareShowCmd(f),
		newShareListCmd(f),
		newShareDeleteCmd(f),
		lease.NewCmd(f, "share"),
	)
}

// waited is the result of a verb that waits for SMB clients.
type waited struct {
	cli.Done
	WaitedMS int64 `json:"waited_ms"`
}

func newShowCmd(f *cli.Factory) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "show <share/path>",
		Short: "Show a file's properties, lease and open handles",
		Long: `Show a file's properties, its lease, and the SMB clients that have it open.

The ETag can only be compared: no operation on files accepts a condition.`,
		Example: "  azconc file show reports/q3.csv -o json",
	}
	return cli.On(f, cmd, ref.ParseFile, f.File, func(ctx context.Context, on ref.File, client *file.Client) (cli.Result, error) {
		p, err := client.GetProperties(ctx, nil)
		if err != nil {
			return nil, err
		}
		seen := pkglease.Observation{
			State: pkglease.State(ptr.Value(p.LeaseState)), Term: pkglease.Term(ptr.Value(p.LeaseDuration)), Metadata: map[string]string{},
		}
		for name, value := range p.Metadata {
			seen.Metadata[strings.ToLower(name)] = ptr.Value(value)
		}
		handles, err := files.Handles(ctx, client, &files.HandlesOptions{Hooks: f.Monitor.Hooks()})
		if err != nil {
			return nil, err
		}
		metadata := cli.OwnMetadata(p.Metadata)
		maps.DeleteFunc(metadata, func(name, _ string) bool { return strings.HasPrefix(name, "azconc") }) // the holder's, shown with the lease
		lease := lease.ShownOf(seen, true)
		lease.Outcome, lease.Resource, lease.ETag = "found", on.String(), string(ptr.Value(p.ETag))
		return showResult{
			Outcome: "found", Resource: on.String(), Size: ptr.Value(p.ContentLength), ETag: lease.ETag, LastModified: ptr.Value(p.LastModified).UTC(),
			ContentType: ptr.Value(p.ContentType), Attributes: ptr.Value(p.FileAttributes), Lease: lease, Handles: handlesShown(handles), Metadata: metadata,
		}, nil
	})
}

type showResult struct {
	Outcome      string            `json:"outcome"`
	Resource     string            `json:"resource"`
	Size         int64             `json:"size"`
	ETag         string            `json:"etag"`
	LastModified time.Time         `json:"last_modified"`
	ContentType  string            `json:"content_type,omitempty"`
	Attributes   string            `json:"attributes,omitempty"`
	Lease        lease.Shown       `json:"lease"`
	Handles      []handleShown     `json:"handles" rows:"-"`
	Metadata     map[string]string `json:"metadata"`
}

func (r showResult) Text(w io.Writer) {
	fields := []string{"file", r.Resource, "size", show.Bytes(r.Size), "etag", r.ETag, "last modified", show.Time(r.LastModified),
		"type", r.ContentType, "attributes", r.Attributes, "lease", r.Lease.State}
	if r.Lease.Status == "locked" {
		fields = append(fields, "owner", r.Lease.Owner, "since", r.Lease.Since, "last heartbeat", r.Lease.Heard)
	}
	for _, h := range r.Handles {
		fields = append(fields, "open", h.who)
	}
	show.Fields(w, show.WithMetadata(fields, r.Metadata)...)
}

func newDeleteCmd(f *cli.Factory) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "delete <share/path>",
		Short: "Delete a file, and detect deletions by SMB clients",
		Long: `Delete a file. If an SMB client has it open, the exit code is 6; --wait waits for the client and reports progress on stderr.

An SMB client can mark a file for deletion, which then stays until all handles are closed, unless the mark is withdrawn. --wait
waits for either: if the file is gone, the command succeeds; if the mark was withdrawn, the file is left as it is and the exit
code is 4. The last writer wins: anything written since you last looked is deleted too, unless you hold the lease.`,
		Example: "  azconc file delete reports/q3.csv\n  azconc file delete reports/q3.csv --wait 5m",
	}
	var leaseID string
	var wait time.Duration
	flags.LeaseID(cmd.Flags(), &leaseID, "`id` under which its lease is held")
	flags.Duration(cmd.Flags(), &wait, "wait", true, "wait this long for SMB clients to close it")
	return cli.On(f, cmd, ref.ParseFile, f.File, func(ctx context.Context, on ref.File, client *file.Client) (cli.Result, error) {
		d, err := files.Delete(ctx, client, &files.DeleteOptions{Wait: waitingFor(f, wait), LeaseID: leaseID, Hooks: f.Monitor.Hooks()})
		return waited{f.Done(string(d.How), on.String(), d.Ambiguous), d.Waited.Milliseconds()}, err
	})
}

func newWaitCmd(f *cli.Factory) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "wait <share/path>",
		Short: "Wait until SMB clients have closed a file",
		Long: `Wait until no SMB client has a file open. The clients waited for are reported on stderr, again every 10 s. If --wait passes
first, the exit code is 6; if the file is gone, it is 3.`,
		Example: "  azconc file wait reports/q3.xlsx --wait 10m",
	}
	var wait time.Duration
	flags.Duration(cmd.Flags(), &wait, "wait", true, "wait at most this long; 0 is no limit")
	return cli.On(f, cmd, ref.ParseFile, f.File, func(ctx context.Context, on ref.File, client *file.Client) (cli.Result, error) {
		began := time.Now()
		err := files.WaitClosed(ctx, client, &files.WaitOptions{
			MaxWait: wait, Poll: retry.Backoff{Base: 250 * time.Millisecond, Cap: 2 * time.Second}, Waiting: waiting(f), Hooks: f.Monitor.Hooks(),
		})
		return waited{f.Done("closed", on.String(), 0), time.Since(began).Milliseconds()}, err
	})
}

// waitingFor returns how a verb waits so long for SMB clients, with its progress on stderr. It is nil if wait is 0: the verb
// does not wait.
func waitingFor(f *cli.Factory, wait time.Duration) *files.WaitOptions {
	if wait == 0 {
		return nil
	}
	return &files.WaitOptions{MaxWait: wait, Waiting: waiting(f), Hooks: f.Monitor.Hooks()}
}

// waiting reports the clients waited for.
func waiting(f *cli.Factory) func(files.InUseError) {
	return func(e files.InUseError) {
		if !f.Quiet {
			f.Notef("waiting: %s", show.FirstLine(e.Error()))
		}
	}
}

func newShareCreateCmd(f *cli.Factory) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "create <share>",
		Short: "Create a share",
		Long: `Create a share. If it already exists, the exit code is 7. A share does not record who created it: if a response was lost
and the share exists then, the exit code is 5.`,
		Example: "  azconc share create reports",
	}
	return cli.On(f, cmd, ref.ParseShare, f.Share, func(ctx context.Context, on ref.File, client *share.Client) (cli.Result, error) {
		r, err := files.CreateShare(ctx, client, &files.CreateShareOptions{Hooks: f.Monitor.Hooks()})
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
		r, err := files.DeleteShare(ctx, client, &files.DeleteShareOptions{LeaseID: leaseID, Hooks: f.Monitor.Hooks()})
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
			LeaseState: string(ptr.Value(p.LeaseState)), QuotaGiB: ptr.Value(p.Quota), Metadata: cli.OwnMetadata(p.Metadata),
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
	prefix, most := flags.Listing(cmd.Flags(), "shares")
	return cli.OnAccount(f, cmd, f.FileService, func(ctx context.Context, service *azfiles.Client) (cli.Result, error) {
		pages := service.NewListSharesPager(&azfiles.ListSharesOptions{Prefix: ptr.Optional(*prefix)})
		found, more, err := cli.List(ctx, pages, *most, func(page azfiles.ListSharesSegmentResponse) (items []shareItem) {
			for _, s := range page.Shares {
				item := shareItem{Name: ptr.Value(s.Name)}
				if p := s.Properties; p != nil {
					item.ETag, item.LastModified = flags.Quoted(ptr.Value(p.ETag)), ptr.Value(p.LastModified).UTC()
					item.LeaseState, item.QuotaGiB = string(ptr.Value(p.LeaseState)), ptr.Value(p.Quota)
				}
				items = append(items, item)
			}
			return items
		})
		return shareListResult{Outcome: "listed", Shares: found, Truncated: more}, err
	})
}
