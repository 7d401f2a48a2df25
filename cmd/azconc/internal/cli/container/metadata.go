package container

import (
	"context"
	"encoding/json"
	"io"
	"maps"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/azconc/azconc/cmd/azconc/internal/cli"
	"github.com/azconc/azconc/cmd/azconc/internal/cli/fail"
	"github.com/azconc/azconc/cmd/azconc/internal/cli/flags"
	"github.com/azconc/azconc/cmd/azconc/internal/cli/ref"
	"github.com/azconc/azconc/cmd/azconc/internal/cli/show"
	"github.com/azconc/azconc/optimistic"
	"github.com/azconc/azconc/optimistic/settings"
)

// turnsLong is part of the help of every verb that changes a container, since the service offers no ETag condition.
const turnsLong = `The service accepts no ETag condition on containers, so azconc holds a short lease on the container while it writes. The lease
excludes other azconc writers; a writer that does not acquire it is not detected. Meanwhile the container cannot be deleted.`

// MetadataNoun is a kind of resource with metadata, other than a blob: a container or a queue.
type MetadataNoun struct {
	Name, Example string
	Warning       string // what the help of every write says
	lease         bool   // writes take a lease id
	Parse         func(string) (ref.Blob, error)
	Target        func(*cli.Factory, ref.Blob) (optimistic.Target[map[string]string], error)
}

type target = optimistic.Target[map[string]string]

var noun = MetadataNoun{
	Name: "container", Example: "jobs", Warning: turnsLong, lease: true, Parse: ref.ParseContainer,
	Target: func(f *cli.Factory, on ref.Blob) (target, error) {
		client, err := f.Container(on)
		return settings.NewContainerMetadata(client), err
	},
}

// NewMetadataCmd returns the group of the verbs on a noun's metadata.
func NewMetadataCmd(f *cli.Factory, n MetadataNoun) *cobra.Command {
	return cli.NewGroupCmd("metadata", "Show and change a "+n.Name+"'s metadata", n.newShowCmd(f), n.newSetCmd(f), n.newUpdateCmd(f))
}

func (n MetadataNoun) newShowCmd(f *cli.Factory) *cobra.Command {
	cmd := &cobra.Command{
		Use:     "show <" + n.Name + ">",
		Short:   "Show a " + n.Name + "'s metadata",
		Example: "  azconc " + n.Name + " metadata show " + n.Example,
	}
	return cli.On(f, cmd, n.Parse, n.open(f), func(ctx context.Context, on ref.Blob, t target) (cli.Result, error) {
		v, err := optimistic.Read(ctx, t, nil)
		if err != nil {
			return nil, err
		}
		metadata := maps.Clone(v.Value)
		delete(metadata, settings.CreationKey)
		return metadataResult{noun: n.Name, name: on.String(), ETag: string(v.ETag), Metadata: metadata}, nil
	})
}

func (n MetadataNoun) newSetCmd(f *cli.Factory) *cobra.Command {
	return n.writing(f, &cobra.Command{
		Use:     "set <" + n.Name + "> [<name>=<value>]…",
		Short:   "Replace a " + n.Name + "'s metadata",
		Long:    "Replace a " + n.Name + "'s metadata: names that are not given are removed.\n\n" + n.Warning,
		Example: "  azconc " + n.Name + " metadata set " + n.Example + " owner=web-1",
	}, nil)
}

func (n MetadataNoun) newUpdateCmd(f *cli.Factory) *cobra.Command {
	cmd := &cobra.Command{
		Use:     "update <" + n.Name + "> [<name>=<value>]…",
		Short:   "Set some of a " + n.Name + "'s metadata and keep the rest",
		Long:    "Set some of a " + n.Name + "'s metadata and keep the rest.\n\n" + n.Warning,
		Example: "  azconc " + n.Name + " metadata update " + n.Example + " owner=web-1 --remove stage",
	}
	remove := cmd.Flags().StringArray("remove", nil, "`name` to remove; may be repeated")
	return n.writing(f, cmd, remove)
}

// writing makes cmd a verb that sets the names in its arguments and removes those in remove, or all others if that is nil.
func (n MetadataNoun) writing(f *cli.Factory, cmd *cobra.Command, remove *[]string) *cobra.Command {
	cmd.Args = cobra.ArbitraryArgs
	var leaseID string
	if n.lease {
		flags.LeaseID(cmd.Flags(), &leaseID, "`id` of the lease that you hold on it")
	}
	var update flags.Update
	flags.AddOperationID(cmd.Flags(), &update.OperationID, "the metadata", optimistic.OperationsKept)
	var given map[string]string
	parse := func(arg string) (on ref.Blob, err error) {
		if on, err = n.Parse(arg); err != nil {
			return on, err
		}
		if given, err = flags.ParsePairs("metadata", cmd.Flags().Args()[1:]); err == nil && remove != nil && len(given)+len(*remove) == 0 {
			err = fail.WithHint(fail.Usagef("no change is given"), "give name=value, or --remove name")
		}
		return on, err
	}
	return cli.On(f, cmd, parse, n.open(f), func(ctx context.Context, on ref.Blob, t target) (cli.Result, error) {
		r, err := optimistic.Update(ctx, t, func(_ context.Context, metadata *map[string]string) error {
			changed := map[string]string{} // the target compares the value with the one that it read
			if remove != nil {
				maps.Copy(changed, *metadata)
				for _, name := range *remove {
					delete(changed, strings.ToLower(name))
				}
			}
			maps.Copy(changed, given)
			*metadata = changed
			return nil
		}, update.Options(optimistic.Conditions{LeaseID: leaseID}, f.Sending()))
		return cli.Written(on, "updated", r, err)
	})
}

func (n MetadataNoun) open(f *cli.Factory) func(ref.Blob) (target, error) {
	return func(on ref.Blob) (target, error) { return n.Target(f, on) }
}

// metadataResult has the resource as "resource", and under the name of its noun.
type metadataResult struct {
	noun, name string
	ETag       string
	Metadata   map[string]string
}

func (r metadataResult) MarshalJSON() ([]byte, error) {
	return json.Marshal(map[string]any{"outcome": "found", "resource": r.name, r.noun: r.name, "etag": r.ETag, "metadata": r.Metadata})
}

func (r metadataResult) Text(w io.Writer) { PrintMetadata(w, r.Metadata) }

func PrintMetadata(w io.Writer, metadata map[string]string) {
	for _, name := range slices.Sorted(maps.Keys(metadata)) {
		show.Fields(w, name, metadata[name])
	}
}
