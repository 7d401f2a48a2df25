package container

import (
	"context"
	"io"
	"maps"
	"slices"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/storage/azblob/container"
	"github.com/spf13/pflag"

	"github.com/azconc/azconc/cmd/azconc/internal/cli"
	"github.com/azconc/azconc/cmd/azconc/internal/cli/flags"
	"github.com/azconc/azconc/cmd/azconc/internal/cli/ref"
	"github.com/azconc/azconc/cmd/azconc/internal/cli/show"
	"github.com/azconc/azconc/pkg/ptr"
)

type showOptions struct {
	Container ref.Blob
	LeaseID   string
}

func showVerb() cli.Verb[showOptions] {
	return cli.Verb[showOptions]{
		Use:     "show <container>",
		Short:   "Show a container's properties and metadata",
		Example: "  azconc container show jobs -o json",
		Flags: func(opts *showOptions, set *pflag.FlagSet) {
			flags.LeaseID(set, &opts.LeaseID, "`id` of the lease that you hold on it")
		},
		Resource: func(opts *showOptions, arg string) (err error) {
			opts.Container, err = ref.ParseContainer(arg)
			return err
		},
		Run: showRun,
	}
}

type showResult struct {
	Outcome      string            `json:"outcome"`
	Container    string            `json:"resource"`
	ETag         string            `json:"etag"`
	LastModified time.Time         `json:"last_modified"`
	LeaseState   string            `json:"lease_state,omitempty"`
	LeaseStatus  string            `json:"lease_status,omitempty"`
	PublicAccess string            `json:"public_access,omitempty"`
	Metadata     map[string]string `json:"metadata"`
}

func (r showResult) Text(w io.Writer) {
	fields := []string{"container", r.Container, "etag", r.ETag, "last modified", show.Time(r.LastModified),
		"lease", r.LeaseState, "public access", r.PublicAccess}
	for _, name := range slices.Sorted(maps.Keys(r.Metadata)) {
		fields = append(fields, "metadata "+name, r.Metadata[name])
	}
	show.Fields(w, fields...)
}

func showRun(ctx context.Context, f *cli.Factory, opts *showOptions) error {
	client, err := f.Container(opts.Container)
	if err != nil {
		return err
	}
	p, err := client.GetProperties(ctx, &container.GetPropertiesOptions{LeaseAccessConditions: &container.LeaseAccessConditions{LeaseID: ptr.Optional(opts.LeaseID)}})
	if err != nil {
		return err
	}
	return f.Print(showResult{
		Outcome: "found", Container: opts.Container.String(), ETag: string(ptr.Value(p.ETag)), LastModified: ptr.Value(p.LastModified).UTC(),
		LeaseState: string(ptr.Value(p.LeaseState)), LeaseStatus: string(ptr.Value(p.LeaseStatus)),
		PublicAccess: string(ptr.Value(p.BlobPublicAccess)), Metadata: cli.OwnMetadata(p.Metadata),
	})
}
