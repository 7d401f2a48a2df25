package blob

import (
	"context"
	"fmt"
	"io"
	"maps"
	"slices"

	"github.com/Azure/azure-sdk-for-go/sdk/storage/azblob/blob"
	"github.com/spf13/pflag"

	"github.com/azconc/azconc/cmd/azconc/internal/cli"
	"github.com/azconc/azconc/cmd/azconc/internal/cli/flags"
	"github.com/azconc/azconc/cmd/azconc/internal/cli/ref"
	"github.com/azconc/azconc/optimistic"
)

// readOptions are those of the verbs that show a part of a blob.
type readOptions struct {
	Blob       ref.Blob
	Conditions optimistic.Conditions

	snapshot string
}

func (o *readOptions) add(set *pflag.FlagSet, takes flags.ConditionSet) {
	flags.AddSnapshot(set, &o.snapshot, "")
	flags.ReadConditions(set, &o.Conditions, takes)
}

func (o *readOptions) parse(in cli.Input) (err error) {
	if o.Blob, err = ref.ParseBlob(in.Args[0]); err != nil {
		return err
	}
	o.Blob, err = o.Blob.At(o.snapshot)
	return err
}

// properties returns the blob's properties, with one request.
func (o *readOptions) properties(ctx context.Context, f *cli.Factory) (blob.GetPropertiesResponse, error) {
	client, err := f.Blob(o.Blob)
	if err != nil {
		return blob.GetPropertiesResponse{}, err
	}
	return client.GetProperties(ctx, &blob.GetPropertiesOptions{AccessConditions: flags.BlobAccess(o.Conditions)})
}

// printPairs prints names with their values, a line each.
func printPairs(w io.Writer, pairs map[string]string) {
	for _, name := range slices.Sorted(maps.Keys(pairs)) {
		fmt.Fprintf(w, "%s=%s\n", name, pairs[name])
	}
}
