package cli

import (
	"cmp"
	"slices"

	"github.com/spf13/cobra"
)

// newRootCmd lists every group. A group lists its verbs in its own file.
func newRootCmd(f *Factory) *cobra.Command {
	root := &cobra.Command{
		Use:               "azconc <command>",
		Short:             "Concurrency control for Azure Storage",
		Long:              "azconc changes, locks and consumes data in Azure Storage without losing concurrent work.",
		SilenceErrors:     true,
		SilenceUsage:      true,
		Args:              cobra.ArbitraryArgs,
		PersistentPreRunE: f.begin,
		RunE: func(cmd *cobra.Command, args []string) error {
			if f.version && len(args) == 0 {
				return versionRun(&versionOptions{factory: f})
			}
			return runGroup(cmd, args)
		},
		Example: `  azconc blob update jobs/state.json --jq '.n += 1'
  azconc help exit-codes`,
	}
	root.CompletionOptions.DisableDefaultCmd = true
	root.SetIn(f.In)
	root.SetOut(f.Out)
	root.SetErr(f.Err)
	root.SetHelpTemplate(helpTemplate)
	root.SetFlagErrorFunc(flagError)
	f.addFlags(root)
	root.Flags().BoolVar(&f.version, "version", false, "print the version")
	root.SetHelpCommand(newHelpCmd())

	root.AddGroup(
		&cobra.Group{ID: "optimistic", Title: "Change it only if it has not changed:"},
		&cobra.Group{ID: "pessimistic", Title: "Hold it, and know when you no longer do:"},
		&cobra.Group{ID: "idempotent", Title: "Do it once:"},
		&cobra.Group{ID: "tool", Title: "Tools:"},
	)
	add := func(group string, cmds ...*cobra.Command) {
		for _, c := range cmds {
			c.GroupID = group
			root.AddCommand(c)
		}
	}
	add("optimistic", newBlobCmd(f), newContainerCmd(f), newTableCmd(f))
	add("pessimistic", newLockCmd(f), newElectCmd(f), newSemaphoreCmd(f), newFileCmd(f), newShareCmd(f))
	add("idempotent", newQueueCmd(f), newOnceCmd(f))
	add("tool", newDemoCmd(f, nil), newDevCmd(f), newVersionCmd(f, nil), newCompletionCmd(f, nil))
	root.AddCommand(newHelpTopics()...)
	secondsWithoutUnit(root)
	return root
}

// newGroupCmd makes a command that only has verbs: alone it prints its help, with a word it does not know it suggests.
func newGroupCmd(use, short string, verbs ...*cobra.Command) *cobra.Command {
	cmd := &cobra.Command{Use: use + " <command>", Short: short, Args: cobra.ArbitraryArgs, RunE: runGroup}
	cmd.AddCommand(verbs...)
	return cmd
}

func runGroup(cmd *cobra.Command, args []string) error {
	if len(args) == 0 {
		return cmd.Help()
	}
	return unknownCommand(cmd, args[0])
}

// suggestions are the verbs that a word may have been meant for, the likeliest first.
func suggestions(cmd *cobra.Command, word string) []string {
	s := cmd.SuggestionsFor(word)
	for _, topic := range cmd.Commands() {
		if topic.IsAdditionalHelpTopicCommand() && inCommon(topic.Name(), word) > 2 {
			s = append(s, topic.Name())
		}
	}
	slices.SortStableFunc(s, func(a, b string) int { return cmp.Compare(inCommon(b, word), inCommon(a, word)) })
	return s
}

// inCommon is the length of the beginning that a and b share.
func inCommon(a, b string) (n int) {
	for n < min(len(a), len(b)) && a[n] == b[n] {
		n++
	}
	return n
}

// resourceArgs takes exactly the arguments that the usage line names.
func resourceArgs(names ...string) cobra.PositionalArgs {
	return func(_ *cobra.Command, args []string) error {
		switch {
		case len(args) < len(names):
			return usagef("%s is missing", names[len(args)])
		case len(args) > len(names):
			return usagef("unexpected argument %q", args[len(names)])
		}
		return nil
	}
}
