package blob

import (
	"context"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"

	"github.com/Azure/azure-sdk-for-go/sdk/storage/azblob/blob"
	"github.com/spf13/cobra"

	"github.com/azconc/azconc/cmd/azconc/internal/cli"
	"github.com/azconc/azconc/cmd/azconc/internal/cli/change"
	"github.com/azconc/azconc/cmd/azconc/internal/cli/fail"
	"github.com/azconc/azconc/cmd/azconc/internal/cli/flags"
	"github.com/azconc/azconc/cmd/azconc/internal/cli/ref"
	"github.com/azconc/azconc/optimistic"
	"github.com/azconc/azconc/optimistic/blobs"
	"github.com/azconc/azconc/pkg/ptr"
)

// pairsKind is a kind of names with values that a blob has: metadata or tags. Its verbs differ only in this.
type pairsKind struct {
	what       string // is changed
	remembers  int    // operations
	conditions flags.ConditionSet
	flag       string // a flag that accepts pairs in addition to the arguments, if any
	parse      func(pairs []string) (map[string]string, error)
	name       func(string) string // as it is stored
	target     func(client *blob.Client) optimistic.Target[map[string]string]
	versioned  bool // the ETag can be used for --if-match
}

// metadataPairs are a blob's metadata, given as arguments, or by --metadata as elsewhere.
var metadataPairs = pairsKind{
	what: "the metadata", remembers: optimistic.OperationsKept, conditions: flags.CondAll, flag: "metadata", name: strings.ToLower, versioned: true,
	parse:  func(pairs []string) (map[string]string, error) { return flags.ParsePairs("metadata", pairs) },
	target: func(client *blob.Client) optimistic.Target[map[string]string] { return blobs.NewMetadata(client) },
}

// tagPairs are a blob's index tags. Conditions on the blob's version do not apply to them.
var tagPairs = pairsKind{
	what: "the tags", remembers: flags.OperationsInTags, conditions: flags.CondTags | flags.CondLease, parse: parseTags,
	name:   func(name string) string { return name },
	target: blobs.NewTags,
}

// set makes cmd a verb that replaces all pairs.
func (kind pairsKind) set(f *cli.Factory, cmd *cobra.Command) *cobra.Command {
	cmd.Use = "set <container/blob> [<name>=<value>]…"
	return kind.writing(f, cmd, nil)
}

// update makes cmd a verb that keeps the pairs that are not named.
func (kind pairsKind) update(f *cli.Factory, cmd *cobra.Command) *cobra.Command {
	cmd.Use = "update <container/blob> [<name>=<value>]…"
	return kind.writing(f, cmd, cmd.Flags().StringArray("remove", nil, "`name` to remove; may be repeated"))
}

// writing makes cmd a verb that sets the names in its arguments and removes those in remove, or all others if that is nil.
func (kind pairsKind) writing(f *cli.Factory, cmd *cobra.Command, remove *[]string) *cobra.Command {
	cmd.Args = cobra.ArbitraryArgs
	set := cmd.Flags()
	var given []string
	if kind.flag != "" {
		set.StringArrayVar(&given, kind.flag, nil, "`name=value`, as in an argument; may be repeated")
	}
	var update flags.Update
	var conditions optimistic.Conditions
	update.Add(set, kind.what, kind.remembers)
	flags.WriteConditions(set, &conditions, kind.conditions)
	var pairs map[string]string
	parse := func(arg string) (on ref.Blob, err error) {
		if on, err = ref.ParseWritable(arg); err != nil {
			return on, err
		}
		if pairs, err = kind.parse(append(given, set.Args()[1:]...)); err == nil && remove != nil && len(pairs)+len(*remove) == 0 {
			err = fail.WithHint(fail.Usagef("no change is given"), "give name=value, or --remove name")
		}
		return on, err
	}
	return cli.On(f, cmd, parse, f.Blob, func(ctx context.Context, on ref.Blob, client *blob.Client) (cli.Result, error) {
		r, err := optimistic.Update(ctx, kind.target(client), func(_ context.Context, stored *map[string]string) error {
			changed := map[string]string{} // the target compares the value with the one that it read
			if remove != nil {
				maps.Copy(changed, *stored)
			}
			maps.Copy(changed, pairs)
			if remove != nil {
				for _, name := range *remove {
					delete(changed, kind.name(name))
				}
			}
			*stored = changed
			return nil
		}, update.Options(conditions, f.Sending()))
		if !kind.versioned {
			r.ETag, r.BaseETag = "", "" // azconc computes these itself, so they are useless for --if-match
		}
		return cli.Written(on, "updated", r, change.UpdateHint(flags.UnconfirmedHint(err), conditions, true))
	})
}

// printPairs prints names with their values, a line each.
func printPairs(w io.Writer, pairs map[string]string) {
	for _, name := range slices.Sorted(maps.Keys(pairs)) {
		fmt.Fprintf(w, "%s=%s\n", name, pairs[name])
	}
}

type metadataResult struct {
	Outcome  string            `json:"outcome"`
	Resource string            `json:"resource"`
	ETag     string            `json:"etag"`
	Metadata map[string]string `json:"metadata"`
}

func (r metadataResult) Text(w io.Writer) { printPairs(w, r.Metadata) }

func newMetadataCmd(f *cli.Factory) *cobra.Command {
	return cli.NewGroupCmd("metadata", "Show and change a blob's metadata",
		properties(f, &cobra.Command{
			Use:     "show <container/blob>",
			Short:   "Show a blob's metadata",
			Example: "  azconc blob metadata show jobs/state.json -o json",
		}, func(on ref.Blob, p blob.GetPropertiesResponse) cli.Result {
			return metadataResult{Outcome: "found", Resource: on.String(), ETag: string(ptr.Value(p.ETag)), Metadata: cli.OwnMetadata(p.Metadata)}
		}),
		metadataPairs.set(f, &cobra.Command{
			Short: "Replace a blob's metadata",
			Long: `Replace a blob's metadata: names that are not given are removed.

To keep them, use azconc blob metadata update.`,
			Example: "  azconc blob metadata set jobs/state.json owner=web-1 stage=2 --if-match 0x8DE0A1B2C3D4E5F",
		}),
		metadataPairs.update(f, &cobra.Command{
			Short:   "Set some of a blob's metadata and keep the rest",
			Example: "  azconc blob metadata update jobs/state.json stage=3 --remove owner",
		}),
	)
}
