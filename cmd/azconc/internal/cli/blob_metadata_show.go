package cli

import (
	"context"
	"fmt"
	"io"
	"maps"
	"slices"

	"github.com/Azure/azure-sdk-for-go/sdk/storage/azblob/blob"
	"github.com/spf13/cobra"

	"github.com/azconc/azconc/optimistic"
)

type blobMetadataShowOptions struct {
	factory    *Factory
	Blob       blobRef
	Conditions optimistic.Conditions
}

func newBlobMetadataShowCmd(f *Factory, runF func(*blobMetadataShowOptions) error) *cobra.Command {
	opts := &blobMetadataShowOptions{factory: f}
	var conditions conditionFlags
	cmd := &cobra.Command{
		Use:     "show <container/blob>",
		Short:   "Show a blob's metadata",
		Args:    resourceArgs("<container/blob>"),
		Example: "  azconc blob metadata show jobs/state.json -o json",
		RunE: func(cmd *cobra.Command, args []string) (err error) {
			if opts.Blob, err = parseBlob(args[0]); err != nil {
				return err
			}
			if opts.Conditions, err = conditions.forRead(); err != nil {
				return err
			}
			if runF != nil {
				return runF(opts)
			}
			return blobMetadataShowRun(cmd.Context(), opts)
		},
	}
	conditions.add(cmd, condAll)
	return cmd
}

type metadataResult struct {
	Outcome  string            `json:"outcome"`
	Resource string            `json:"resource"`
	ETag     string            `json:"etag"`
	Metadata map[string]string `json:"metadata"`
}

func (r metadataResult) text(w io.Writer) {
	for _, name := range slices.Sorted(maps.Keys(r.Metadata)) {
		fmt.Fprintf(w, "%s=%s\n", name, r.Metadata[name])
	}
}

func blobMetadataShowRun(ctx context.Context, opts *blobMetadataShowOptions) error {
	client, err := opts.factory.Blob(opts.Blob)
	if err != nil {
		return err
	}
	p, err := client.GetProperties(ctx, &blob.GetPropertiesOptions{AccessConditions: blobAccess(opts.Conditions)})
	if err != nil {
		return err
	}
	return opts.factory.Print(metadataResult{
		Outcome: "found", Resource: opts.Blob.String(), ETag: string(deref(p.ETag)), Metadata: ownMetadata(p.Metadata),
	})
}
