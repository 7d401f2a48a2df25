package container

import (
	"context"
	"encoding/json"
	"io"
	"maps"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

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

var noun = MetadataNoun{
	Name: "container", Example: "jobs", Warning: turnsLong, lease: true, Parse: ref.ParseContainer,
	Target: func(f *cli.Factory, on ref.Blob) (optimistic.Target[map[string]string], error) {
		client, err := f.Container(on)
		return settings.NewContainerMetadata(client), err
	},
}

func (n MetadataNoun) arg() string { return "<" + n.Name + ">" }

type metadataOptions struct {
	On          ref.Blob
	Metadata    map[string]string
	Remove      []string
	LeaseID     string
	OperationID string
}

func newMetadataCmd(f *cli.Factory) *cobra.Command { return NewNounMetadataCmd(f, noun) }

func NewNounMetadataCmd(f *cli.Factory, noun MetadataNoun) *cobra.Command {
	return cli.NewGroupCmd("metadata", "Show and change a "+noun.Name+"'s metadata",
		noun.showVerb().Command(f),
		noun.setVerb().Command(f),
		noun.updateVerb().Command(f),
	)
}

func (n MetadataNoun) resource(opts *metadataOptions, arg string) (err error) {
	opts.On, err = n.Parse(arg)
	return err
}

func (n MetadataNoun) addFlags(opts *metadataOptions, set *pflag.FlagSet) {
	if n.lease {
		flags.LeaseID(set, &opts.LeaseID, "`id` of the lease that you hold on it")
	}
	flags.AddOperationID(set, &opts.OperationID, "the metadata", optimistic.OperationsKept)
}

func (n MetadataNoun) parseWrite(opts *metadataOptions, in cli.Input) (err error) {
	if opts.Metadata, err = flags.ParsePairs("metadata", in.Args[1:]); err != nil {
		return err
	}
	if in.Flags.Lookup("remove") != nil && len(opts.Metadata) == 0 && len(opts.Remove) == 0 {
		return fail.WithHint(fail.Usagef("no change is given"), "give name=value, or --remove name")
	}
	return nil
}

// write carries out a change of the metadata.
func (n MetadataNoun) write(ctx context.Context, f *cli.Factory, opts *metadataOptions, change func(map[string]string)) error {
	target, err := n.Target(f, opts.On)
	if err != nil {
		return err
	}
	r, err := optimistic.Update(ctx, target, func(_ context.Context, metadata *map[string]string) error {
		changed := maps.Clone(*metadata)
		if changed == nil {
			changed = map[string]string{}
		}
		change(changed)
		*metadata = changed
		return nil
	}, &optimistic.UpdateOptions{Conditions: optimistic.Conditions{LeaseID: opts.LeaseID}, OperationID: opts.OperationID,
		SendOptions: optimistic.SendOptions{Hooks: f.Monitor.Hooks()}})
	return f.PrintWrite(opts.On, "updated", r, err)
}

func (n MetadataNoun) setVerb() cli.Verb[metadataOptions] {
	return cli.Verb[metadataOptions]{
		Use:      "set " + n.arg() + " [<name>=<value>]…",
		Short:    "Replace a " + n.Name + "'s metadata",
		Long:     "Replace a " + n.Name + "'s metadata: names that are not given are removed.\n\n" + n.Warning,
		Example:  "  azconc " + n.Name + " metadata set " + n.Example + " owner=web-1",
		Args:     cobra.ArbitraryArgs,
		Flags:    n.addFlags,
		Resource: n.resource,
		Parse:    n.parseWrite,
		Run: func(ctx context.Context, f *cli.Factory, opts *metadataOptions) error {
			return n.write(ctx, f, opts, func(metadata map[string]string) {
				clear(metadata)
				maps.Copy(metadata, opts.Metadata)
			})
		},
	}
}

func (n MetadataNoun) updateVerb() cli.Verb[metadataOptions] {
	return cli.Verb[metadataOptions]{
		Use:     "update " + n.arg() + " [<name>=<value>]…",
		Short:   "Set some of a " + n.Name + "'s metadata and keep the rest",
		Long:    "Set some of a " + n.Name + "'s metadata and keep the rest.\n\n" + n.Warning,
		Example: "  azconc " + n.Name + " metadata update " + n.Example + " owner=web-1 --remove stage",
		Args:    cobra.ArbitraryArgs,
		Flags: func(opts *metadataOptions, set *pflag.FlagSet) {
			n.addFlags(opts, set)
			set.StringArrayVar(&opts.Remove, "remove", nil, "`name` to remove; may be repeated")
		},
		Resource: n.resource,
		Parse:    n.parseWrite,
		Run: func(ctx context.Context, f *cli.Factory, opts *metadataOptions) error {
			return n.write(ctx, f, opts, func(metadata map[string]string) {
				maps.Copy(metadata, opts.Metadata)
				for _, name := range opts.Remove {
					delete(metadata, strings.ToLower(name))
				}
			})
		},
	}
}

func (n MetadataNoun) showVerb() cli.Verb[metadataOptions] {
	return cli.Verb[metadataOptions]{
		Use:      "show " + n.arg(),
		Short:    "Show a " + n.Name + "'s metadata",
		Example:  "  azconc " + n.Name + " metadata show " + n.Example,
		Resource: n.resource,
		Run: func(ctx context.Context, f *cli.Factory, opts *metadataOptions) error {
			target, err := n.Target(f, opts.On)
			if err != nil {
				return err
			}
			v, err := optimistic.Read(ctx, target, nil)
			if err != nil {
				return err
			}
			metadata := maps.Clone(v.Value)
			delete(metadata, settings.CreationKey)
			return f.Print(nounMetadataResult{noun: n.Name, name: opts.On.String(), ETag: string(v.ETag), Metadata: metadata})
		},
	}
}

// nounMetadataResult has the resource as "resource", and under the name of its noun, where it was first: {"container": "jobs", …}.
type nounMetadataResult struct {
	noun, name string
	ETag       string
	Metadata   map[string]string
}

func (r nounMetadataResult) MarshalJSON() ([]byte, error) {
	return json.Marshal(map[string]any{"outcome": "found", "resource": r.name, r.noun: r.name, "etag": r.ETag, "metadata": r.Metadata})
}

func (r nounMetadataResult) Text(w io.Writer) { PrintMetadata(w, r.Metadata) }

func PrintMetadata(w io.Writer, metadata map[string]string) {
	for _, name := range slices.Sorted(maps.Keys(metadata)) {
		show.Fields(w, name, metadata[name])
	}
}
