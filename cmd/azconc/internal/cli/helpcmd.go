package cli

import (
	"fmt"
	"strings"

	"github.com/spf13/cobra"
)

// textOnly annotates a command whose output is text by nature, so that -o json does not apply to it.
const textOnly = "azconc-text-only"

// newHelpCmd is cobra's, but for a name that does not exist, which is a usage error.
func newHelpCmd() *cobra.Command {
	return &cobra.Command{
		Use:         "help [<command> | <topic>]",
		Short:       "Print the help of a command, or a topic",
		Annotations: map[string]string{textOnly: "true"},
		ValidArgsFunction: func(cmd *cobra.Command, args []string, start string) ([]string, cobra.ShellCompDirective) {
			on, _, err := cmd.Root().Find(args)
			if err != nil {
				return nil, cobra.ShellCompDirectiveNoFileComp
			}
			var names []string
			for _, sub := range on.Commands() {
				if strings.HasPrefix(sub.Name(), start) && (sub.IsAvailableCommand() || sub.IsAdditionalHelpTopicCommand()) {
					names = append(names, sub.Name()+"\t"+sub.Short)
				}
			}
			return names, cobra.ShellCompDirectiveNoFileComp
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			on, rest, err := cmd.Root().Find(args)
			if err != nil {
				return &usageError{err: err}
			}
			if len(rest) > 0 && (on.HasSubCommands() || on.IsAdditionalHelpTopicCommand()) {
				return unknownCommand(on, rest[0])
			}
			on.InitDefaultHelpFlag()
			return on.Help()
		},
	}
}

// unknownCommand is the error for a word that is no verb of cmd, with those that it may have been.
func unknownCommand(cmd *cobra.Command, word string) error {
	if cmd.SuggestionsMinimumDistance <= 0 {
		cmd.SuggestionsMinimumDistance = 2
	}
	err := usagef("unknown command %q for %q", word, cmd.CommandPath())
	if s := suggestions(cmd, word); len(s) > 0 {
		return withHint(err, fmt.Sprintf("did you mean %s?", strings.Join(s, " or ")))
	}
	return err
}
