package cli

import (
	"context"
	"io"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/storage/azblob/container"
	"github.com/spf13/cobra"

	"github.com/azconc/azconc/optimistic"
)

type containerShowOptions struct {
	factory    *Factory
	Container  blobRef
	Conditions optimistic.Conditions
}

func newContainerShowCmd(f *Factory, runF func(*containerShowOptions) error) *cobra.Command {
	opts := &containerShowOptions{factory: f}
	var conditions conditionFlags
	cmd := &cobra.Command{
		Use:     "show <container>",
		Short:   "Show a container's properties and metadata",
		Args:    resourceArgs("<container>"),
		Example: "  azconc container show jobs -o json",
		RunE: func(cmd *cobra.Command, args []string) (err error) {
			if opts.Container, err = parseContainer(args[0]); err != nil {
				return err
			}
			if opts.Conditions, err = conditions.forRead(); err != nil {
				return err
			}
			if runF != nil {
				return runF(opts)
			}
			return containerShowRun(cmd.Context(), opts)
		},
	}
	conditions.add(cmd, condLease)
	return cmd
}

type containerShowResult struct {
	Outcome      string            `json:"outcome"`
	Container    string            `json:"resource"`
	ETag         string            `json:"etag"`
	LastModified time.Time         `json:"last_modified"`
	LeaseState   string            `json:"lease_state,omitempty"`
	LeaseStatus  string            `json:"lease_status,omitempty"`
	PublicAccess string            `json:"public_access,omitempty"`
	Metadata     map[string]string `json:"metadata"`
}

func (r containerShowResult) text(w io.Writer) {
	fields := []string{"container", r.Container, "etag", r.ETag, "last modified", timeText(r.LastModified),
		"lease", r.LeaseState, "public access", r.PublicAccess}
	for _, name := range slices.Sorted(maps.Keys(r.Metadata)) {
		fields = append(fields, "metadata "+name, r.Metadata[name])
	}
	printFields(w, fields...)
}

func containerShowRun(ctx context.Context, opts *containerShowOptions) error {
	client, err := opts.factory.Container(opts.Container)
	if err != nil {
		return err
	}
	p, err := client.GetProperties(ctx, &container.GetPropertiesOptions{LeaseAccessConditions: containerAccess(opts.Conditions).LeaseAccessConditions})
	if err != nil {
		return err
	}
	return opts.factory.Print(containerShowResult{
		Outcome: "found", Container: opts.Container.String(), ETag: string(deref(p.ETag)), LastModified: deref(p.LastModified).UTC(),
		LeaseState: string(deref(p.LeaseState)), LeaseStatus: string(deref(p.LeaseStatus)),
		PublicAccess: string(deref(p.BlobPublicAccess)), Metadata: ownMetadata(p.Metadata),
	})
}

// ownMetadata is the user's metadata: names in lower case, without what azconc keeps there for itself.
func ownMetadata(raw map[string]*string) map[string]string {
	out := make(map[string]string, len(raw))
	for name, value := range raw {
		if name = strings.ToLower(name); name != optimistic.LineageKey && name != optimistic.OperationsKey && name != createStamp {
			out[name] = deref(value)
		}
	}
	return out
}
