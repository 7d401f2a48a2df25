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

type blobTagsShowOptions struct {
	factory    *Factory
	Blob       blobRef
	Conditions optimistic.Conditions
}

func newBlobTagsShowCmd(f *Factory, runF func(*blobTagsShowOptions) error) *cobra.Command {
	opts := &blobTagsShowOptions{factory: f}
	var conditions conditionFlags
	cmd := &cobra.Command{
		Use:     "show <container/blob>",
		Short:   "Show a blob's index tags",
		Args:    resourceArgs("<container/blob>"),
		Example: "  azconc blob tags show jobs/state.json -o json",
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
			return blobTagsShowRun(cmd.Context(), opts)
		},
	}
	conditions.add(cmd, condTags|condLease)
	return cmd
}

type tagsResult struct {
	Outcome  string            `json:"outcome"`
	Resource string            `json:"resource"`
	Tags     map[string]string `json:"tags"`
}

func (r tagsResult) text(w io.Writer) {
	for _, name := range slices.Sorted(maps.Keys(r.Tags)) {
		fmt.Fprintf(w, "%s=%s\n", name, r.Tags[name])
	}
}

func blobTagsShowRun(ctx context.Context, opts *blobTagsShowOptions) error {
	client, err := opts.factory.Blob(opts.Blob)
	if err != nil {
		return err
	}
	resp, err := client.GetTags(ctx, &blob.GetTagsOptions{BlobAccessConditions: blobAccess(opts.Conditions)})
	if err != nil {
		return err
	}
	tags := map[string]string{}
	for _, t := range resp.BlobTagSet {
		if name := deref(t.Key); name != optimistic.LineageKey {
			tags[name] = deref(t.Value)
		}
	}
	return opts.factory.Print(tagsResult{Outcome: "found", Resource: opts.Blob.String(), Tags: tags})
}
