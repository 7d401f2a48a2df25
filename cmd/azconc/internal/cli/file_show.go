package cli

import (
	"context"
	"io"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/azconc/azconc/pessimistic"
)

// fileOptions are those of a verb that takes a file and nothing else.
type fileOptions struct {
	factory *Factory
	File    fileRef
}

func newFileShowCmd(f *Factory, runF func(*fileOptions) error) *cobra.Command {
	opts := &fileOptions{factory: f}
	return &cobra.Command{
		Use:   "show <share/path>",
		Short: "Show a file's properties, lease and open handles",
		Long: `Show a file's properties, its lease, and the SMB clients that have it open.

The ETag can only be compared: no operation on files accepts a condition.`,
		Args:    resourceArgs("<share/path>"),
		Example: "  azconc file show reports/q3.csv -o json",
		RunE: func(cmd *cobra.Command, args []string) (err error) {
			if opts.File, err = parseFile(args[0]); err != nil {
				return err
			}
			if runF != nil {
				return runF(opts)
			}
			return fileShowRun(cmd.Context(), opts)
		},
	}
}

type fileShowResult struct {
	Outcome      string            `json:"outcome"`
	Resource     string            `json:"resource"`
	Size         int64             `json:"size"`
	ETag         string            `json:"etag"`
	LastModified time.Time         `json:"last_modified"`
	ContentType  string            `json:"content_type,omitempty"`
	Attributes   string            `json:"attributes,omitempty"`
	Lease        leaseShown        `json:"lease"`
	Handles      []handleShown     `json:"handles"`
	Metadata     map[string]string `json:"metadata"`
}

func (r fileShowResult) text(w io.Writer) {
	fields := []string{"file", r.Resource, "size", byteCount(r.Size), "etag", r.ETag, "last modified", timeText(r.LastModified),
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
	printFields(w, fields...)
}

func fileShowRun(ctx context.Context, opts *fileOptions) error {
	r, err := opts.factory.showFile(ctx, opts.File)
	if err != nil {
		return err
	}
	return opts.factory.Print(r)
}

func (f *Factory) showFile(ctx context.Context, on fileRef) (fileShowResult, error) {
	client, err := f.File(on)
	if err != nil {
		return fileShowResult{}, err
	}
	p, err := client.GetProperties(ctx, nil)
	if err != nil {
		return fileShowResult{}, err
	}
	seen := pessimistic.Observation{State: pessimistic.State(text(p.LeaseState)), Infinite: text(p.LeaseDuration) == "infinite", Metadata: map[string]string{}}
	for name, value := range p.Metadata {
		seen.Metadata[strings.ToLower(name)] = deref(value)
	}
	handles, err := pessimistic.Handles(ctx, client, nil)
	if err != nil {
		return fileShowResult{}, err
	}
	metadata := ownMetadata(p.Metadata)
	maps.DeleteFunc(metadata, func(name, _ string) bool { return strings.HasPrefix(name, "azconc") }) // the holder's, shown with the lease
	lease := lookedAt(seen)
	lease.Outcome, lease.Resource, lease.ETag = "found", on.String(), string(deref(p.ETag))
	return fileShowResult{
		Outcome: "found", Resource: on.String(), Size: deref(p.ContentLength), ETag: lease.ETag, LastModified: deref(p.LastModified).UTC(),
		ContentType: deref(p.ContentType), Attributes: deref(p.FileAttributes), Lease: lease, Handles: handlesShown(handles), Metadata: metadata,
	}, nil
}
