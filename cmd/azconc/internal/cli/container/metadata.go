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

var noun = MetadataNoun{
	Name: "container", Example: "jobs", Warning: turnsLong, lease: true, Parse: ref.ParseContainer,
	Target: func(f *cli.Factory, on ref.Blob) (optimistic.Target[map[string]string], error) {
		client, err := f.Container(on)
		return settings.NewContainerMetadata(client), err
	},
}

func (n MetadataNoun) arg() string { return "<" + n.Name + ">" }

type nounMetadataOptions struct {
	factory     *cli.Factory
	noun        MetadataNoun
	On          ref.Blob
	Metadata    map[string]string
	Remove      []string
	LeaseID     string
	OperationID string
}

func newMetadataCmd(f *cli.Factory) *cobra.Command { return NewNounMetadataCmd(f, noun) }

func NewNounMetadataCmd(f *cli.Factory, noun MetadataNoun) *cobra.Command {
	return cli.NewGroupCmd("metadata", "Show and change a "+noun.Name+"'s metadata",
		newNounMetadataShowCmd(f, noun, nil),
		newNounMetadataSetCmd(f, noun, nil),
		newNounMetadataUpdateCmd(f, noun, nil),
	)
}

// newNounMetadataWriteCmd makes the command around a change of the metadata.
func newNounMetadataWriteCmd(f *cli.Factory, noun MetadataNoun, runF func(*nounMetadataOptions) error, change func(*nounMetadataOptions, map[string]string)) (*cobra.Command, *nounMetadataOptions) {
	opts := &nounMetadataOptions{factory: f, noun: noun}
	cmd := &cobra.Command{
		Args: cobra.ArbitraryArgs,
		RunE: func(cmd *cobra.Command, args []string) (err error) {
			if len(args) == 0 {
				return fail.Usagef("%s is missing", noun.arg())
			}
			if opts.On, err = noun.Parse(args[0]); err != nil {
				return err
			}
			if opts.Metadata, err = flags.ParsePairs("metadata", args[1:]); err != nil {
				return err
			}
			if opts.LeaseID, err = flags.ParseLeaseID(opts.LeaseID); err != nil {
				return err
			}
			if cmd.Flags().Lookup("remove") != nil && len(opts.Metadata) == 0 && len(opts.Remove) == 0 {
				return fail.WithHint(fail.Usagef("no change is given"), "give name=value, or --remove name")
			}
			if runF != nil {
				return runF(opts)
			}
			return nounMetadataRun(cmd.Context(), opts, change)
		},
	}
	if noun.lease {
		cmd.Flags().StringVar(&opts.LeaseID, "lease-id", "", "`id` of the lease that you hold on it")
	}
	flags.AddOperationID(cmd, &opts.OperationID, "the metadata", optimistic.OperationsKept)
	return cmd, opts
}

func nounMetadataRun(ctx context.Context, opts *nounMetadataOptions, change func(*nounMetadataOptions, map[string]string)) error {
	target, err := opts.noun.Target(opts.factory, opts.On)
	if err != nil {
		return err
	}
	r, err := optimistic.Update(ctx, target, func(_ context.Context, metadata *map[string]string) error {
		changed := maps.Clone(*metadata)
		if changed == nil {
			changed = map[string]string{}
		}
		change(opts, changed)
		*metadata = changed
		return nil
	}, &optimistic.UpdateOptions{Conditions: optimistic.Conditions{LeaseID: opts.LeaseID}, OperationID: opts.OperationID})
	if err != nil {
		return fail.Tally(err, r)
	}
	return opts.factory.Print(cli.NewWriteResult(opts.On, "updated", r))
}

func newNounMetadataShowCmd(f *cli.Factory, noun MetadataNoun, runF func(*nounMetadataOptions) error) *cobra.Command {
	opts := &nounMetadataOptions{factory: f, noun: noun}
	return &cobra.Command{
		Use:     "show " + noun.arg(),
		Short:   "Show a " + noun.Name + "'s metadata",
		Args:    cli.ResourceArgs(noun.arg()),
		Example: "  azconc " + noun.Name + " metadata show " + noun.Example,
		RunE: func(cmd *cobra.Command, args []string) (err error) {
			if opts.On, err = noun.Parse(args[0]); err != nil {
				return err
			}
			if runF != nil {
				return runF(opts)
			}
			return nounMetadataShowRun(cmd.Context(), opts)
		},
	}
}

// nounMetadataResult names what it is about by its noun: {"container": "jobs", …}.
type nounMetadataResult struct {
	noun, name string
	ETag       string
	Metadata   map[string]string
}

func (r nounMetadataResult) MarshalJSON() ([]byte, error) {
	return json.Marshal(map[string]any{"outcome": "found", r.noun: r.name, "etag": r.ETag, "metadata": r.Metadata})
}

func (r nounMetadataResult) Text(w io.Writer) { PrintMetadata(w, r.Metadata) }

func PrintMetadata(w io.Writer, metadata map[string]string) {
	for _, name := range slices.Sorted(maps.Keys(metadata)) {
		show.Fields(w, name, metadata[name])
	}
}

func nounMetadataShowRun(ctx context.Context, opts *nounMetadataOptions) error {
	target, err := opts.noun.Target(opts.factory, opts.On)
	if err != nil {
		return err
	}
	v, err := optimistic.Read(ctx, target, nil)
	if err != nil {
		return err
	}
	metadata := maps.Clone(v.Value)
	delete(metadata, flags.CreateStamp)
	return opts.factory.Print(nounMetadataResult{noun: opts.noun.Name, name: opts.On.String(), ETag: string(v.ETag), Metadata: metadata})
}

func newNounMetadataSetCmd(f *cli.Factory, noun MetadataNoun, runF func(*nounMetadataOptions) error) *cobra.Command {
	cmd, _ := newNounMetadataWriteCmd(f, noun, runF, func(opts *nounMetadataOptions, metadata map[string]string) {
		clear(metadata)
		maps.Copy(metadata, opts.Metadata)
	})
	cmd.Use = "set " + noun.arg() + " [<name>=<value>]…"
	cmd.Short = "Replace a " + noun.Name + "'s metadata"
	cmd.Long = "Replace a " + noun.Name + "'s metadata: names that are not given go.\n\n" + noun.Warning
	cmd.Example = "  azconc " + noun.Name + " metadata set " + noun.Example + " owner=web-1"
	return cmd
}

func newNounMetadataUpdateCmd(f *cli.Factory, noun MetadataNoun, runF func(*nounMetadataOptions) error) *cobra.Command {
	cmd, opts := newNounMetadataWriteCmd(f, noun, runF, func(opts *nounMetadataOptions, metadata map[string]string) {
		maps.Copy(metadata, opts.Metadata)
		for _, name := range opts.Remove {
			delete(metadata, strings.ToLower(name))
		}
	})
	cmd.Use = "update " + noun.arg() + " [<name>=<value>]…"
	cmd.Short = "Set some of a " + noun.Name + "'s metadata and keep the rest"
	cmd.Long = "Set some of a " + noun.Name + "'s metadata and keep the rest.\n\n" + noun.Warning
	cmd.Example = "  azconc " + noun.Name + " metadata update " + noun.Example + " owner=web-1 --remove stage"
	cmd.Flags().StringArrayVar(&opts.Remove, "remove", nil, "`name` to remove; may be repeated")
	return cmd
}
