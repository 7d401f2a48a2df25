package blob

import (
	"context"
	"maps"

	"github.com/Azure/azure-sdk-for-go/sdk/storage/azblob/blob"
	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/azconc/azconc/cmd/azconc/internal/cli"
	"github.com/azconc/azconc/cmd/azconc/internal/cli/change"
	"github.com/azconc/azconc/cmd/azconc/internal/cli/fail"
	"github.com/azconc/azconc/cmd/azconc/internal/cli/flags"
	"github.com/azconc/azconc/cmd/azconc/internal/cli/ref"
	"github.com/azconc/azconc/optimistic"
)

// pairsOptions are those of the verbs that change a blob's metadata or tags.
type pairsOptions struct {
	Blob       ref.Blob
	Pairs      map[string]string
	Remove     []string
	Conditions optimistic.Conditions
	Update     flags.Update

	pairs []string
}

// pairsKind describes the differences between metadata and tags.
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

// set returns a verb that replaces all pairs.
func (kind pairsKind) set() cli.Verb[pairsOptions] {
	v := kind.verb(func(opts *pairsOptions, pairs map[string]string) {
		clear(pairs)
		maps.Copy(pairs, opts.Pairs)
	})
	v.Use, v.Flags = "set <container/blob> [<name>=<value>]…", kind.flags
	return v
}

// update returns a verb that keeps the pairs that are not named.
func (kind pairsKind) update() cli.Verb[pairsOptions] {
	v := kind.verb(func(opts *pairsOptions, pairs map[string]string) {
		maps.Copy(pairs, opts.Pairs)
		for _, name := range opts.Remove {
			delete(pairs, kind.name(name))
		}
	})
	v.Use = "update <container/blob> [<name>=<value>]…"
	v.Flags = func(opts *pairsOptions, set *pflag.FlagSet) {
		kind.flags(opts, set)
		set.StringArrayVar(&opts.Remove, "remove", nil, "`name` to remove; may be repeated")
	}
	return v
}

func (kind pairsKind) verb(edit func(*pairsOptions, map[string]string)) cli.Verb[pairsOptions] {
	return cli.Verb[pairsOptions]{
		Args:     cobra.ArbitraryArgs,
		Resource: func(opts *pairsOptions, arg string) (err error) { opts.Blob, err = ref.ParseWritable(arg); return err },
		Parse:    kind.parseOptions,
		Run: func(ctx context.Context, f *cli.Factory, opts *pairsOptions) error {
			return pairsRun(ctx, f, opts, kind, edit)
		},
	}
}

func (kind pairsKind) flags(opts *pairsOptions, set *pflag.FlagSet) {
	if kind.flag != "" {
		set.StringArrayVar(&opts.pairs, kind.flag, nil, "`name=value`, as in an argument; may be repeated")
	}
	opts.Update.Add(set, kind.what, kind.remembers)
	flags.WriteConditions(set, &opts.Conditions, kind.conditions)
}

func (kind pairsKind) parseOptions(opts *pairsOptions, in cli.Input) (err error) {
	if opts.Pairs, err = kind.parse(append(opts.pairs, in.Args[1:]...)); err != nil {
		return err
	}
	if in.Flags.Lookup("remove") != nil && len(opts.Pairs) == 0 && len(opts.Remove) == 0 {
		return fail.WithHint(fail.Usagef("no change is given"), "give name=value, or --remove name")
	}
	return nil
}

func pairsRun(ctx context.Context, f *cli.Factory, opts *pairsOptions, kind pairsKind, edit func(*pairsOptions, map[string]string)) error {
	client, err := f.Blob(opts.Blob)
	if err != nil {
		return err
	}
	r, err := optimistic.Update(ctx, kind.target(client), func(_ context.Context, pairs *map[string]string) error {
		// The target compares the result with the value that it read, so the change is made on a copy.
		*pairs = maps.Clone(*pairs)
		if *pairs == nil {
			*pairs = map[string]string{}
		}
		edit(opts, *pairs)
		return nil
	}, opts.Update.Options(opts.Conditions, f.Sending()))
	if !kind.versioned {
		r.ETag, r.BaseETag = "", "" // azconc computes these itself, so they are useless for --if-match
	}
	return f.PrintWrite(opts.Blob, "updated", r, change.UpdateHint(flags.UnconfirmedHint(err), opts.Conditions, true))
}
