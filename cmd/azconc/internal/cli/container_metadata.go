package cli

import (
	"context"
	"io"
	"maps"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/azconc/azconc/optimistic"
)

// turnsLong is what the help of every verb says that changes a container: the service has no conditions to offer.
const turnsLong = `The service takes no ETag on containers. So azconc takes turns by a short lease on the container, which binds those who
do the same; a writer that does not is not noticed. Others cannot delete the container meanwhile.`

type containerMetadataOptions struct {
	factory     *Factory
	Container   blobRef
	Metadata    map[string]string
	Remove      []string
	LeaseID     string
	OperationID string
}

func newContainerMetadataCmd(f *Factory) *cobra.Command {
	return newGroupCmd("metadata", "Show and change a container's metadata",
		newContainerMetadataShowCmd(f, nil),
		newContainerMetadataSetCmd(f, nil),
		newContainerMetadataUpdateCmd(f, nil),
	)
}

// newContainerMetadataWriteCmd makes the command around a change of the metadata.
func newContainerMetadataWriteCmd(f *Factory, runF func(*containerMetadataOptions) error, change func(*containerMetadataOptions, map[string]string)) (*cobra.Command, *containerMetadataOptions) {
	opts := &containerMetadataOptions{factory: f}
	cmd := &cobra.Command{
		Args: cobra.ArbitraryArgs,
		RunE: func(cmd *cobra.Command, args []string) (err error) {
			if len(args) == 0 {
				return usagef("<container> is missing")
			}
			if opts.Container, err = parseContainer(args[0]); err != nil {
				return err
			}
			if opts.Metadata, err = parsePairs("metadata", args[1:]); err != nil {
				return err
			}
			if opts.LeaseID, err = parseLeaseID(opts.LeaseID); err != nil {
				return err
			}
			if cmd.Flags().Lookup("remove") != nil && len(opts.Metadata) == 0 && len(opts.Remove) == 0 {
				return withHint(usagef("nothing says what to change"), "give name=value, or --remove name")
			}
			if runF != nil {
				return runF(opts)
			}
			return containerMetadataRun(cmd.Context(), opts, change)
		},
	}
	cmd.Flags().StringVar(&opts.LeaseID, "lease-id", "", "`id` of the lease that you hold on it")
	cmd.Flags().StringVar(&opts.OperationID, "op-id", "", "`id` of this change: a container that had it already is left alone")
	return cmd, opts
}

func containerMetadataRun(ctx context.Context, opts *containerMetadataOptions, change func(*containerMetadataOptions, map[string]string)) error {
	client, err := opts.factory.Container(opts.Container)
	if err != nil {
		return err
	}
	r, err := optimistic.Update(ctx, optimistic.MetadataOfContainer(client), func(_ context.Context, metadata *map[string]string) error {
		changed := maps.Clone(*metadata)
		if changed == nil {
			changed = map[string]string{}
		}
		change(opts, changed)
		*metadata = changed
		return nil
	}, &optimistic.UpdateOptions{Conditions: optimistic.Conditions{LeaseID: opts.LeaseID}, OperationID: opts.OperationID})
	if err != nil {
		return tally(err, r)
	}
	return opts.factory.Print(newWriteResult(opts.Container, "updated", r))
}

func newContainerMetadataShowCmd(f *Factory, runF func(*containerMetadataOptions) error) *cobra.Command {
	opts := &containerMetadataOptions{factory: f}
	return &cobra.Command{
		Use:     "show <container>",
		Short:   "Show a container's metadata",
		Args:    resourceArgs("<container>"),
		Example: "  azconc container metadata show jobs",
		RunE: func(cmd *cobra.Command, args []string) (err error) {
			if opts.Container, err = parseContainer(args[0]); err != nil {
				return err
			}
			if runF != nil {
				return runF(opts)
			}
			return containerMetadataShowRun(cmd.Context(), opts)
		},
	}
}

type containerMetadataResult struct {
	Outcome   string            `json:"outcome"`
	Container string            `json:"container"`
	ETag      string            `json:"etag"`
	Metadata  map[string]string `json:"metadata"`
}

func (r containerMetadataResult) text(w io.Writer) {
	for _, name := range slices.Sorted(maps.Keys(r.Metadata)) {
		printFields(w, name, r.Metadata[name])
	}
}

func containerMetadataShowRun(ctx context.Context, opts *containerMetadataOptions) error {
	client, err := opts.factory.Container(opts.Container)
	if err != nil {
		return err
	}
	v, err := optimistic.Read(ctx, optimistic.MetadataOfContainer(client), nil)
	if err != nil {
		return err
	}
	metadata := maps.Clone(v.Value)
	delete(metadata, createStamp)
	return opts.factory.Print(containerMetadataResult{Outcome: "found", Container: opts.Container.String(), ETag: string(v.ETag), Metadata: metadata})
}

func newContainerMetadataSetCmd(f *Factory, runF func(*containerMetadataOptions) error) *cobra.Command {
	cmd, _ := newContainerMetadataWriteCmd(f, runF, func(opts *containerMetadataOptions, metadata map[string]string) {
		clear(metadata)
		maps.Copy(metadata, opts.Metadata)
	})
	cmd.Use = "set <container> [<name>=<value>]…"
	cmd.Short = "Replace a container's metadata"
	cmd.Long = "Replace a container's metadata: names that are not given go.\n\n" + turnsLong
	cmd.Example = "  azconc container metadata set jobs owner=web-1"
	return cmd
}

func newContainerMetadataUpdateCmd(f *Factory, runF func(*containerMetadataOptions) error) *cobra.Command {
	cmd, opts := newContainerMetadataWriteCmd(f, runF, func(opts *containerMetadataOptions, metadata map[string]string) {
		maps.Copy(metadata, opts.Metadata)
		for _, name := range opts.Remove {
			delete(metadata, strings.ToLower(name))
		}
	})
	cmd.Use = "update <container> [<name>=<value>]…"
	cmd.Short = "Set some of a container's metadata and keep the rest"
	cmd.Long = "Set some of a container's metadata and keep the rest.\n\n" + turnsLong
	cmd.Example = "  azconc container metadata update jobs owner=web-1 --remove stage"
	cmd.Flags().StringArrayVar(&opts.Remove, "remove", nil, "`name` to remove; may be repeated")
	return cmd
}
