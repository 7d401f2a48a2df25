package root

import (
	"strings"

	"github.com/spf13/cobra"

	"github.com/azconc/azconc/cmd/azconc/internal/cli"
	"github.com/azconc/azconc/cmd/azconc/internal/cli/fail"
)

// newHelpCmd is cobra's, but for a name that does not exist, which is a usage error.
func newHelpCmd() *cobra.Command {
	return &cobra.Command{
		Use:         "help [<command> | <topic>]",
		Short:       "Print the help of a command, or a topic",
		Annotations: map[string]string{cli.TextOnly: "true"},
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
				return &fail.UsageError{Err: err}
			}
			if len(rest) > 0 && (on.HasSubCommands() || on.IsAdditionalHelpTopicCommand()) {
				return cli.UnknownCommand(on, rest[0])
			}
			on.InitDefaultHelpFlag()
			return on.Help()
		},
	}
}
