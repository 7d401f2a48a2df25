package blob

import (
	"context"
	"maps"

	"github.com/Azure/azure-sdk-for-go/sdk/storage/azblob/blob"
	"github.com/spf13/cobra"

	"github.com/azconc/azconc/cmd/azconc/internal/cli"
	"github.com/azconc/azconc/cmd/azconc/internal/cli/change"
	"github.com/azconc/azconc/cmd/azconc/internal/cli/fail"
	"github.com/azconc/azconc/cmd/azconc/internal/cli/flags"
	"github.com/azconc/azconc/cmd/azconc/internal/cli/ref"
	"github.com/azconc/azconc/optimistic"
)

// pairsOptions are those of the verbs that change names with values: a blob's metadata, or its tags.
type pairsOptions struct {
	factory     *cli.Factory
	Blob        ref.Blob
	Pairs       map[string]string
	Remove      []string
	Conditions  optimistic.Conditions
	OperationID string
	MaxAttempts int
	Trust       bool
}

// pairsKind is how metadata and tags differ.
type pairsKind struct {
	what       string // is changed
	remembers  int    // operations
	conditions flags.ConditionSet
	flag       string // the flag that accepts pairs as well as the arguments do, if any
	parse      func(pairs []string) (map[string]string, error)
	name       func(string) string // as it is stored
	target     func(client *blob.Client, c optimistic.Conditions) optimistic.Target[map[string]string]
	versioned  bool // the ETag is one that others can use
}

// newPairsSetCmd makes a command that replaces all pairs.
func newPairsSetCmd(f *cli.Factory, runF func(*pairsOptions) error, kind pairsKind) *cobra.Command {
	cmd, _ := newPairsCmd(f, runF, kind, func(opts *pairsOptions, pairs map[string]string) {
		clear(pairs)
		maps.Copy(pairs, opts.Pairs)
	})
	cmd.Use = "set <container/blob> [<name>=<value>]…"
	return cmd
}

// newPairsUpdateCmd returns an update command, which keeps the pairs that are not named.
func newPairsUpdateCmd(f *cli.Factory, runF func(*pairsOptions) error, kind pairsKind) *cobra.Command {
	cmd, opts := newPairsCmd(f, runF, kind, func(opts *pairsOptions, pairs map[string]string) {
		maps.Copy(pairs, opts.Pairs)
		for _, name := range opts.Remove {
			delete(pairs, kind.name(name))
		}
	})
	cmd.Use = "update <container/blob> [<name>=<value>]…"
	cmd.Flags().StringArrayVar(&opts.Remove, "remove", nil, "`name` to remove; may be repeated")
	return cmd
}

func newPairsCmd(f *cli.Factory, runF func(*pairsOptions) error, kind pairsKind, edit func(*pairsOptions, map[string]string)) (*cobra.Command, *pairsOptions) {
	opts := &pairsOptions{factory: f}
	var conditions flags.Conditions
	var pairs []string
	cmd := &cobra.Command{
		Args: cobra.ArbitraryArgs,
		RunE: func(cmd *cobra.Command, args []string) (err error) {
			if len(args) == 0 {
				return fail.Usagef("<container/blob> is missing")
			}
			if opts.Blob, err = ref.ParseWritable(args[0]); err != nil {
				return err
			}
			if opts.Pairs, err = kind.parse(append(pairs, args[1:]...)); err != nil {
				return err
			}
			if opts.Conditions, err = conditions.ForWrite(); err != nil {
				return err
			}
			if opts.MaxAttempts < 0 || cmd.Flags().Changed("max-attempts") && opts.MaxAttempts == 0 {
				return fail.Usagef("--max-attempts %d is not positive", opts.MaxAttempts)
			}
			if cmd.Flags().Lookup("remove") != nil && len(opts.Pairs) == 0 && len(opts.Remove) == 0 {
				return fail.WithHint(fail.Usagef("no change is given"), "give name=value, or --remove name")
			}
			if runF != nil {
				return runF(opts)
			}
			return pairsRun(cmd.Context(), opts, kind, edit)
		},
	}
	set := cmd.Flags()
	if kind.flag != "" {
		set.StringArrayVar(&pairs, kind.flag, nil, "`name=value`, as in an argument; may be repeated")
	}
	flags.AddOperationID(cmd, &opts.OperationID, kind.what, kind.remembers)
	set.IntVar(&opts.MaxAttempts, "max-attempts", 0, "give up after this many conflicts (default 12, or 30s)")
	flags.AddTrustConflicts(cmd, &opts.Trust)
	conditions.Add(cmd, kind.conditions)
	return cmd, opts
}

func pairsRun(ctx context.Context, opts *pairsOptions, kind pairsKind, edit func(*pairsOptions, map[string]string)) error {
	client, err := opts.factory.Blob(opts.Blob)
	if err != nil {
		return err
	}
	update := &optimistic.UpdateOptions{Conditions: change.Carried(opts.Conditions), OperationID: opts.OperationID, Attempts: opts.MaxAttempts}
	if opts.MaxAttempts > 0 {
		update.Elapsed = -1
	}
	update.TrustConflicts = opts.Trust
	r, err := optimistic.Update(ctx, kind.target(client, opts.Conditions), func(_ context.Context, pairs *map[string]string) error {
		// The target keeps what it read to compare with: the change is made on a copy.
		*pairs = maps.Clone(*pairs)
		if *pairs == nil {
			*pairs = map[string]string{}
		}
		edit(opts, *pairs)
		return nil
	}, update)
	if err != nil {
		return change.UpdateHint(flags.UnconfirmedHint(fail.Tally(err, r)), opts.Conditions, true)
	}
	if !kind.versioned {
		r.ETag, r.BaseETag = "", "" // of azconc's own making: no good for --if-match
	}
	return opts.factory.Print(cli.NewWriteResult(opts.Blob, "updated", r))
}
