package blob

import (
	"context"
	"io"
	"strings"

	"github.com/Azure/azure-sdk-for-go/sdk/storage/azblob/blob"
	"github.com/spf13/pflag"

	"github.com/azconc/azconc/cmd/azconc/internal/cli"
	"github.com/azconc/azconc/cmd/azconc/internal/cli/flags"
	"github.com/azconc/azconc/optimistic"
	"github.com/azconc/azconc/optimistic/blobs"
	"github.com/azconc/azconc/pkg/ptr"
)

// metadataPairs are a blob's metadata, given as arguments, or by --metadata as elsewhere.
var metadataPairs = pairsKind{
	what: "the metadata", remembers: optimistic.OperationsKept, conditions: flags.CondAll, flag: "metadata", name: strings.ToLower, versioned: true,
	parse:  func(pairs []string) (map[string]string, error) { return flags.ParsePairs("metadata", pairs) },
	target: func(client *blob.Client) optimistic.Target[map[string]string] { return blobs.NewMetadata(client) },
}

func metadataSetVerb() cli.Verb[pairsOptions] {
	v := metadataPairs.set()
	v.Short = "Replace a blob's metadata"
	v.Long = `Replace a blob's metadata: names that are not given are removed.

To keep them, use azconc blob metadata update.`
	v.Example = "  azconc blob metadata set jobs/state.json owner=web-1 stage=2 --if-match 0x8DE0A1B2C3D4E5F"
	return v
}

func metadataUpdateVerb() cli.Verb[pairsOptions] {
	v := metadataPairs.update()
	v.Short = "Set some of a blob's metadata and keep the rest"
	v.Example = "  azconc blob metadata update jobs/state.json stage=3 --remove owner"
	return v
}

func metadataShowVerb() cli.Verb[readOptions] {
	return cli.Verb[readOptions]{
		Use:     "show <container/blob>",
		Short:   "Show a blob's metadata",
		Example: "  azconc blob metadata show jobs/state.json -o json",
		Flags: func(opts *readOptions, set *pflag.FlagSet) {
			opts.add(set, flags.CondAll)
		},
		Parse: (*readOptions).parse,
		Run:   metadataShowRun,
	}
}

type metadataResult struct {
	Outcome  string            `json:"outcome"`
	Resource string            `json:"resource"`
	ETag     string            `json:"etag"`
	Metadata map[string]string `json:"metadata"`
}

func (r metadataResult) Text(w io.Writer) { printPairs(w, r.Metadata) }

func metadataShowRun(ctx context.Context, f *cli.Factory, opts *readOptions) error {
	p, err := opts.properties(ctx, f)
	if err != nil {
		return err
	}
	return f.Print(metadataResult{
		Outcome: "found", Resource: opts.Blob.String(), ETag: string(ptr.Value(p.ETag)), Metadata: cli.OwnMetadata(p.Metadata),
	})
}
