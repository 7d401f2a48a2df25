package cli

import (
	"context"
	"maps"
	"strings"

	"github.com/spf13/cobra"

	"github.com/azconc/azconc/optimistic"
)

// tagsOptions are those of tags set and tags update.
type tagsOptions struct {
	factory     *Factory
	Blob        blobRef
	Tags        map[string]string
	Remove      []string
	Conditions  optimistic.Conditions
	OperationID string
	MaxAttempts int
}

func newBlobTagsSetCmd(f *Factory, runF func(*tagsOptions) error) *cobra.Command {
	cmd, _ := newTagsCmd(f, runF, func(opts *tagsOptions, tags map[string]string) {
		clear(tags)
		maps.Copy(tags, opts.Tags)
	})
	cmd.Use = "set <container/blob> [<name>=<value>]…"
	cmd.Short = "Replace a blob's index tags"
	cmd.Long = `Replace a blob's index tags: those that are not given go. To keep them use blob tags update.

Tags are outside the blob's ETag. The write is on condition that every tag that was read still has its value, and leaves
a tag of its own, ` + optimistic.LineageKey + `, by which the next one tells whether this one was applied. A predicate cannot say that a
tag is absent: one that somebody without azconc adds at the same time is lost.`
	cmd.Example = `  azconc blob tags set jobs/state.json state=ready prio=3
  azconc blob tags set jobs/state.json state=done --if-tags "\"state\" = 'ready'"`
	return cmd
}

// newTagsCmd makes the command around a change of the tags.
func newTagsCmd(f *Factory, runF func(*tagsOptions) error, change func(*tagsOptions, map[string]string)) (*cobra.Command, *tagsOptions) {
	opts := &tagsOptions{factory: f}
	var conditions conditionFlags
	cmd := &cobra.Command{
		Args: cobra.ArbitraryArgs,
		RunE: func(cmd *cobra.Command, args []string) (err error) {
			if len(args) == 0 {
				return usagef("<container/blob> is missing")
			}
			if opts.Blob, err = parseWritable(args[0]); err != nil {
				return err
			}
			if opts.Tags, err = parseTags(args[1:]); err != nil {
				return err
			}
			if opts.Conditions, err = conditions.forWrite(); err != nil {
				return err
			}
			if opts.MaxAttempts < 0 || cmd.Flags().Changed("max-attempts") && opts.MaxAttempts == 0 {
				return usagef("--max-attempts %d is not positive", opts.MaxAttempts)
			}
			if cmd.Flags().Lookup("remove") != nil && len(opts.Tags) == 0 && len(opts.Remove) == 0 {
				return withHint(usagef("nothing says what to change"), "give name=value, or --remove name")
			}
			if runF != nil {
				return runF(opts)
			}
			return tagsRun(cmd.Context(), opts, change)
		},
	}
	flags := cmd.Flags()
	flags.StringVar(&opts.OperationID, "op-id", "", "`id` of this change: tags that had it already are left alone")
	flags.IntVar(&opts.MaxAttempts, "max-attempts", 0, "give up after so many conflicts (default 12, or 30s)")
	conditions.add(cmd, condTags|condLease)
	return cmd, opts
}

// parseTags reads name=value pairs. Names of tags differ by case, unlike those of metadata.
func parseTags(pairs []string) (map[string]string, error) {
	tags := make(map[string]string, len(pairs))
	for _, p := range pairs {
		name, value, ok := strings.Cut(p, "=")
		if !ok || name == "" {
			return nil, usagef("tag %q is not name=value", p)
		}
		if _, twice := tags[name]; twice {
			return nil, usagef("tag %s is given twice", name)
		}
		if strings.EqualFold(name, optimistic.LineageKey) {
			return nil, usagef("tag %s: the name is azconc's own", name)
		}
		tags[name] = value
	}
	if len(tags) > 10 {
		return nil, usagef("%d tags are given: a blob has 10 at most", len(tags))
	}
	return tags, nil
}

func tagsRun(ctx context.Context, opts *tagsOptions, change func(*tagsOptions, map[string]string)) error {
	client, err := opts.factory.Blob(opts.Blob)
	if err != nil {
		return err
	}
	update := &optimistic.UpdateOptions{Conditions: carried(opts.Conditions), OperationID: opts.OperationID, Attempts: opts.MaxAttempts}
	if opts.MaxAttempts > 0 {
		update.Elapsed = -1
	}
	r, err := optimistic.Update(ctx, optimistic.BlobTags(client), func(_ context.Context, tags *map[string]string) error {
		*tags = maps.Clone(*tags)
		if *tags == nil {
			*tags = map[string]string{}
		}
		change(opts, *tags)
		return nil
	}, update)
	if err != nil {
		return updateHint(tally(err, r), opts.Conditions, true)
	}
	r.ETag, r.BaseETag = "", "" // of the tags, by azconc's own making: no good for --if-match
	return opts.factory.Print(newWriteResult(opts.Blob, "updated", r))
}
