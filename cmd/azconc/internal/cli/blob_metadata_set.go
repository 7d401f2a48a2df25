package cli

import (
	"context"
	"maps"

	"github.com/spf13/cobra"

	"github.com/azconc/azconc/optimistic"
)

// metadataOptions are those of metadata set and metadata update.
type metadataOptions struct {
	factory     *Factory
	Blob        blobRef
	Metadata    map[string]string
	Remove      []string
	Conditions  optimistic.Conditions
	OperationID string
	MaxAttempts int
}

func newBlobMetadataSetCmd(f *Factory, runF func(*metadataOptions) error) *cobra.Command {
	cmd, _ := newMetadataCmd(f, runF, func(opts *metadataOptions, metadata map[string]string) {
		clear(metadata)
		maps.Copy(metadata, opts.Metadata)
	})
	cmd.Use = "set <container/blob> [<name>=<value>]…"
	cmd.Short = "Replace a blob's metadata"
	cmd.Long = `Replace a blob's metadata: names that are not given go.

To keep them use blob metadata update.`
	cmd.Example = "  azconc blob metadata set jobs/state.json owner=web-1 stage=2 --if-match 0x8DE0A1B2C3D4E5F"
	return cmd
}

// newMetadataCmd makes the command around a change of the metadata. The names and values are arguments, or --metadata as
// elsewhere.
func newMetadataCmd(f *Factory, runF func(*metadataOptions) error, change func(*metadataOptions, map[string]string)) (*cobra.Command, *metadataOptions) {
	opts := &metadataOptions{factory: f}
	var conditions conditionFlags
	var pairs []string
	cmd := &cobra.Command{
		Args: cobra.ArbitraryArgs,
		RunE: func(cmd *cobra.Command, args []string) (err error) {
			if len(args) == 0 {
				return usagef("<container/blob> is missing")
			}
			if opts.Blob, err = parseWritable(args[0]); err != nil {
				return err
			}
			if opts.Metadata, err = parsePairs("metadata", append(pairs, args[1:]...)); err != nil {
				return err
			}
			if opts.Conditions, err = conditions.forWrite(); err != nil {
				return err
			}
			if opts.MaxAttempts < 0 || cmd.Flags().Changed("max-attempts") && opts.MaxAttempts == 0 {
				return usagef("--max-attempts %d is not positive", opts.MaxAttempts)
			}
			if cmd.Flags().Lookup("remove") != nil && len(opts.Metadata) == 0 && len(opts.Remove) == 0 {
				return withHint(usagef("nothing says what to change"), "give name=value, or --remove name")
			}
			if runF != nil {
				return runF(opts)
			}
			return metadataRun(cmd.Context(), opts, change)
		},
	}
	flags := cmd.Flags()
	flags.StringArrayVar(&pairs, "metadata", nil, "`name=value`, as an argument would be; may be repeated")
	flags.StringVar(&opts.OperationID, "op-id", "", "`id` of this change: a blob that had it already is left alone")
	flags.IntVar(&opts.MaxAttempts, "max-attempts", 0, "give up after so many conflicts (default 12, or 30s)")
	conditions.add(cmd, condAll)
	return cmd, opts
}

func metadataRun(ctx context.Context, opts *metadataOptions, change func(*metadataOptions, map[string]string)) error {
	client, err := opts.factory.Blob(opts.Blob)
	if err != nil {
		return err
	}
	target := &guarded[map[string]string]{Target: optimistic.BlobMetadata(client), op: "update", conditions: opts.Conditions}
	update := &optimistic.UpdateOptions{Conditions: carried(opts.Conditions), OperationID: opts.OperationID, Attempts: opts.MaxAttempts}
	if opts.MaxAttempts > 0 {
		update.Elapsed = -1
	}
	r, err := optimistic.Update(ctx, target, func(_ context.Context, metadata *map[string]string) error {
		// The target keeps what it read to compare with: the change is made on a copy.
		*metadata = maps.Clone(*metadata)
		if *metadata == nil {
			*metadata = map[string]string{}
		}
		change(opts, *metadata)
		return nil
	}, update)
	if err != nil {
		return updateHint(tally(err, r), opts.Conditions, true)
	}
	return opts.factory.Print(newWriteResult(opts.Blob, "updated", r))
}
