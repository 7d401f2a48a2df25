package file

import (
	"context"
	"io"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/azconc/azconc/cmd/azconc/internal/cli"
	"github.com/azconc/azconc/cmd/azconc/internal/cli/lease"
	"github.com/azconc/azconc/cmd/azconc/internal/cli/ref"
	"github.com/azconc/azconc/cmd/azconc/internal/cli/show"
	"github.com/azconc/azconc/pessimistic/files"
	pkglease "github.com/azconc/azconc/pkg/lease"
	"github.com/azconc/azconc/pkg/ptr"
)

// options are those of a verb that takes a file and nothing else.
type options struct {
	File ref.File
}

func showVerb() cli.Verb[options] {
	return cli.Verb[options]{
		Use:   "show <share/path>",
		Short: "Show a file's properties, lease and open handles",
		Long: `Show a file's properties, its lease, and the SMB clients that have it open.

The ETag can only be compared: no operation on files accepts a condition.`,
		Example:  "  azconc file show reports/q3.csv -o json",
		Resource: func(opts *options, arg string) (err error) { opts.File, err = ref.ParseFile(arg); return err },
		Run:      showRun,
	}
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
	for _, name := range slices.Sorted(maps.Keys(r.Metadata)) {
		fields = append(fields, "metadata "+name, r.Metadata[name])
	}
	show.Fields(w, fields...)
}

func showRun(ctx context.Context, f *cli.Factory, opts *options) error {
	r, err := showFile(f, ctx, opts.File)
	if err != nil {
		return err
	}
	return f.Print(r)
}

func showFile(f *cli.Factory, ctx context.Context, on ref.File) (showResult, error) {
	client, err := f.File(on)
	if err != nil {
		return showResult{}, err
	}
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
