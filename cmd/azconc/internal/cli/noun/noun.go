// Package noun has the verbs that several nouns share: those on names with values, and those on a setting that is one document.
package noun

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/azconc/azconc/cmd/azconc/internal/cli"
	"github.com/azconc/azconc/cmd/azconc/internal/cli/change"
	"github.com/azconc/azconc/cmd/azconc/internal/cli/fail"
	"github.com/azconc/azconc/cmd/azconc/internal/cli/flags"
	"github.com/azconc/azconc/cmd/azconc/internal/cli/ref"
	"github.com/azconc/azconc/cmd/azconc/internal/cli/show"
	"github.com/azconc/azconc/optimistic"
)

// Pairs are the names with values that a resource has: its metadata, or a blob's index tags. Their verbs are show, set and update.
type Pairs struct {
	Noun, Arg, Example string // "container", "<container>" and "jobs"
	Long               string // ends the help of the verbs that write
	Parse              func(string) (ref.Blob, error)
	Open               func(ref.Blob) (optimistic.Target[map[string]string], error)
	Conditions         flags.ConditionSet // that a write takes

	Tags func(pairs []string) (map[string]string, error) // reads index tags; nil for metadata
}

// NewCmd returns the group of the verbs. show reads the pairs; a nil show is a read of the target, without conditions.
func (p Pairs) NewCmd(f *cli.Factory, show *cobra.Command) *cobra.Command {
	group, what := "metadata", "metadata"
	if p.Tags != nil {
		group, what = "tags", "index tags"
	}
	verb := func(use, short, long, example string) *cobra.Command {
		return &cobra.Command{
			Use: use + " " + p.Arg + " [<name>=<value>]…", Short: short, Long: strings.TrimSpace(short + long + ".\n\n" + p.Long),
			Example: "  azconc " + p.Noun + " " + group + " " + use + " " + p.Example + " " + example,
		}
	}
	set := verb("set", "Replace a "+p.Noun+"'s "+what, ": names that are not given are removed", "owner=web-1 stage=2")
	update := verb("update", "Set some of a "+p.Noun+"'s "+what+" and keep the rest", "", "stage=3 --remove owner")
	remove := update.Flags().StringArray("remove", nil, "`name` to remove; may be repeated")
	return cli.NewGroupCmd(group, "Show and change a "+p.Noun+"'s "+what, cmp.Or(show, p.newShowCmd(f)), p.writing(f, set, nil), p.writing(f, update, remove))
}

func (p Pairs) newShowCmd(f *cli.Factory) *cobra.Command {
	cmd := &cobra.Command{
		Use:     "show " + p.Arg,
		Short:   "Show a " + p.Noun + "'s metadata",
		Example: "  azconc " + p.Noun + " metadata show " + p.Example,
	}
	return cli.On(f, cmd, p.Parse, p.Open, func(ctx context.Context, on ref.Blob, t optimistic.Target[map[string]string]) (cli.Result, error) {
		v, err := optimistic.Read(ctx, t, &optimistic.ReadOptions{SendOptions: f.Sending()})
		if err != nil {
			return nil, err
		}
		r := Metadata{Outcome: "found", Resource: on.String(), Metadata: v.Value}
		if p.Conditions != 0 {
			r.ETag = string(v.ETag)
		}
		return r, nil
	})
}

// writing makes cmd a verb that sets the names in its arguments and removes those in remove, or all others if that is nil.
func (p Pairs) writing(f *cli.Factory, cmd *cobra.Command, remove *[]string) *cobra.Command {
	cmd.Args = cobra.ArbitraryArgs
	read, stored, what, kept := flags.ParseMetadata, strings.ToLower, "the metadata", optimistic.OperationsKept
	if p.Tags != nil {
		read, stored, what, kept = p.Tags, strings.Clone, "the tags", flags.OperationsInTags
	}
	var o optimistic.UpdateOptions
	if p.Conditions&^flags.CondLease == 0 { // without conditions there are no conflicts
		flags.AddOperationID(cmd.Flags(), &o.OperationID, what, kept)
	} else {
		flags.Update(cmd.Flags(), &o, what, kept)
	}
	flags.WriteConditions(cmd.Flags(), &o.Conditions, p.Conditions)
	var given map[string]string
	parse := cli.Checked(p.Parse, func() (err error) {
		if given, err = read(cmd.Flags().Args()[1:]); err == nil && remove != nil && len(given)+len(*remove) == 0 {
			err = fail.WithHint(fail.Usagef("no change is given"), "give name=value, or --remove name")
		}
		return err
	})
	return cli.On(f, cmd, parse, p.Open, func(ctx context.Context, on ref.Blob, t optimistic.Target[map[string]string]) (cli.Result, error) {
		o.Hooks = f.Monitor.Hooks()
		r, err := optimistic.Update(ctx, t, func(_ context.Context, pairs *map[string]string) error {
			changed := map[string]string{} // the target compares the value with the one that it read
			if remove != nil {
				maps.Copy(changed, *pairs)
			}
			maps.Copy(changed, given)
			if remove != nil {
				for _, name := range *remove {
					delete(changed, stored(name))
				}
			}
			*pairs = changed
			return nil
		}, &o)
		if p.Tags != nil || p.Conditions == 0 {
			r.ETag, r.BaseETag = "", "" // azconc computes these itself, so they are useless for --if-match
		}
		return cli.Written(on, "updated", r, change.UpdateHint(err, &o))
	})
}

// Metadata is metadata that was read.
type Metadata struct {
	Outcome  string            `json:"outcome"`
	Resource string            `json:"resource"`
	ETag     string            `json:"etag,omitempty"`
	Metadata map[string]string `json:"metadata"`
}

func (r Metadata) Text(w io.Writer) { PrintPairs(w, r.Metadata) }

// PrintPairs prints names with their values, a line each.
func PrintPairs(w io.Writer, pairs map[string]string) {
	for _, name := range slices.Sorted(maps.Keys(pairs)) {
		fmt.Fprintf(w, "%s=%s\n", name, pairs[name])
	}
}

// Document is a setting of a resource, or of the account, that is read and written as one JSON document. Its verbs are show and set.
type Document[T any] struct {
	Path, Name string // of the group, "queue acl"; and of the setting, "the stored access policies of a queue"
	Arg        string // "<queue>", or "" for a setting of the account
	Example    string // of a resource
	Long       string // ends the help of set
	Versioned  bool   // the resource has an ETag and a lease, whose id a write takes
	Parse      func(string) (ref.Blob, error)
	Open       func(ref.Blob) (optimistic.Target[T], error)
	Decode     func([]byte) (T, error)
	Encode     func(T) any
}

// NewCmd returns the group of the verbs.
func (d Document[T]) NewCmd(f *cli.Factory) *cobra.Command {
	_, group, _ := strings.Cut(d.Path, " ")
	return cli.NewGroupCmd(group, "Show and change "+d.Name, d.newShowCmd(f), d.newSetCmd(f))
}

// verb makes cmd a verb on the setting.
func (d Document[T]) verb(f *cli.Factory, cmd *cobra.Command, do func(context.Context, optimistic.Target[T]) (cli.Result, error)) *cobra.Command {
	if d.Arg == "" {
		return cli.OnAccount(f, cmd, func() (optimistic.Target[T], error) { return d.Open(ref.Blob{}) }, do)
	}
	return cli.On(f, cmd, d.Parse, d.Open, func(ctx context.Context, _ ref.Blob, target optimistic.Target[T]) (cli.Result, error) {
		return do(ctx, target)
	})
}

func (d Document[T]) newShowCmd(f *cli.Factory) *cobra.Command {
	return d.verb(f, &cobra.Command{
		Use:     strings.TrimSpace("show " + d.Arg),
		Short:   "Print " + d.Name + " as JSON",
		Example: "  azconc " + strings.TrimSpace(d.Path+" show "+d.Example) + " > settings.json",
	}, func(ctx context.Context, target optimistic.Target[T]) (cli.Result, error) {
		v, err := optimistic.Read(ctx, target, &optimistic.ReadOptions{SendOptions: f.Sending()})
		if err != nil {
			return nil, err
		}
		r := documentResult{Outcome: "found", Resource: target.Resource(), Settings: d.Encode(v.Value)}
		if d.Versioned {
			r.ETag = string(v.ETag)
		}
		return r, nil
	})
}

// documentResult is the document alone in text, so that it can be edited and given to set.
type documentResult struct {
	Outcome  string `json:"outcome"`
	Resource string `json:"resource"`
	ETag     string `json:"etag,omitempty"`
	Settings any    `json:"settings"`
}

func (r documentResult) Text(w io.Writer) { show.JSON(w, r.Settings) }

func (d Document[T]) newSetCmd(f *cli.Factory) *cobra.Command {
	cmd := &cobra.Command{
		Use:     strings.Join(strings.Fields("set "+d.Arg+" --file <file>"), " "),
		Short:   "Replace " + d.Name,
		Long:    "Replace " + d.Name + " by a JSON document like the one that show prints.\n\n" + d.Long,
		Example: "  azconc " + strings.TrimSpace(d.Path+" set "+d.Example) + " --file settings.json",
	}
	var file string
	o := optimistic.UpdateOptions{}
	flags.File(cmd.Flags(), &file, "`file` with the document; - is stdin")
	if d.Versioned {
		flags.LeaseID(cmd.Flags(), &o.Conditions.LeaseID, "`id` of the lease that you hold on it")
	}
	return d.verb(f, cmd, func(ctx context.Context, target optimistic.Target[T]) (cli.Result, error) {
		data, err := f.WholeFile(ctx, file)
		if err != nil {
			return nil, err
		}
		value, err := d.Decode(data)
		if err != nil {
			return nil, err
		}
		o.Hooks = f.Monitor.Hooks()
		r, err := optimistic.Update(ctx, target, func(_ context.Context, v *T) error {
			*v = value
			return nil
		}, &o)
		if !d.Versioned {
			r.ETag, r.BaseETag = "", ""
		}
		return cli.Written(ref.Blob{Container: target.Resource()}, "updated", r, err)
	})
}
