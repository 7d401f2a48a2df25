// Package file has the verbs of azconc file and azconc share.
package file

import (
	"context"
	"fmt"
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
		newExplainCmd(f),
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

// result is the result of a verb that changes a file or share.
type result struct {
	Outcome   string `json:"outcome"`
	Resource  string `json:"resource"`
	ETag      string `json:"etag,omitempty"`
	WaitedMS  int64  `json:"waited_ms"`
	Ambiguous int    `json:"ambiguous"`
	cli.Cost
}

func (r result) Text(w io.Writer) { fmt.Fprintln(w, r.Outcome, r.Resource) }

func newShowCmd(f *cli.Factory) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "show <share/path>",
		Short: "Show a file's properties, lease and open handles",
		Long: `Show a file's properties, its lease, and the SMB clients that have it open.

The ETag can only be compared: no operation on files accepts a condition.`,
		Example: "  azconc file show reports/q3.csv -o json",
	}
	return cli.On(f, cmd, ref.ParseFile, f.File, func(ctx context.Context, on ref.File, client *file.Client) (cli.Result, error) {
		return showFile(ctx, on, client)
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

func showFile(ctx context.Context, on ref.File, client *file.Client) (showResult, error) {
	p, err := client.GetProperties(ctx, nil)
	if err != nil {
		return showResult{}, err
	}
	seen := pkglease.Observation{State: pkglease.State(lease.Text(p.LeaseState)), Term: pkglease.Term(lease.Text(p.LeaseDuration)), Metadata: map[string]string{}}
	for name, value := range p.Metadata {
		seen.Metadata[strings.ToLower(name)] = ptr.Value(value)
	}
	handles, err := files.Handles(ctx, client, nil)
	if err != nil {
		return showResult{}, err
	}
	metadata := cli.OwnMetadata(p.Metadata)
	maps.DeleteFunc(metadata, func(name, _ string) bool { return strings.HasPrefix(name, "azconc") }) // the holder's, shown with the lease
	lease := lease.ShownOf(seen, true)
	lease.Outcome, lease.Resource, lease.ETag = "found", on.String(), string(ptr.Value(p.ETag))
	return showResult{
		Outcome: "found", Resource: on.String(), Size: ptr.Value(p.ContentLength), ETag: lease.ETag, LastModified: ptr.Value(p.LastModified).UTC(),
		ContentType: ptr.Value(p.ContentType), Attributes: ptr.Value(p.FileAttributes), Lease: lease, Handles: handlesShown(handles), Metadata: metadata,
	}, nil
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
		return result{Outcome: string(d.How), Resource: on.String(), WaitedMS: d.Waited.Milliseconds(), Ambiguous: d.Ambiguous, Cost: f.Cost()}, err
	})
}
