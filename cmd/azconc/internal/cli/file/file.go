// Package file has the verbs of azconc file and azconc share.
package file

import (
	"context"
	"io"
	"maps"
	"strings"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/storage/azfile/file"
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
		seen := pkglease.Observation{State: pkglease.State(lease.Text(p.LeaseState)), Term: pkglease.Term(lease.Text(p.LeaseDuration)), Metadata: map[string]string{}}
		for name, value := range p.Metadata {
			seen.Metadata[strings.ToLower(name)] = ptr.Value(value)
		}
		handles, err := files.Handles(ctx, client, nil)
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
		d, err := files.Delete(ctx, client, &files.DeleteOptions{Wait: waitingFor(f, wait), LeaseID: leaseID})
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
			MaxWait: wait, Poll: retry.Backoff{Base: 250 * time.Millisecond, Cap: 2 * time.Second}, Waiting: waiting(f),
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
	return &files.WaitOptions{MaxWait: wait, Waiting: waiting(f)}
}

// waiting reports the clients waited for.
func waiting(f *cli.Factory) func(files.InUseError) {
	return func(e files.InUseError) {
		if !f.Quiet {
			f.Notef("waiting: %s", show.FirstLine(e.Error()))
		}
	}
}
