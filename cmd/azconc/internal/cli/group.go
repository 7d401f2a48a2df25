package cli

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/azconc/azconc/cmd/azconc/internal/cli/fail"
)

// NewGroupCmd makes a command that only has verbs: alone it prints its help, with a word it does not know it suggests.
func NewGroupCmd(use, short string, verbs ...*cobra.Command) *cobra.Command {
	cmd := &cobra.Command{Use: use + " <command>", Short: short, Args: cobra.ArbitraryArgs, RunE: RunGroup}
	cmd.AddCommand(verbs...)
	return cmd
}

func RunGroup(cmd *cobra.Command, args []string) error {
	if len(args) == 0 {
		return cmd.Help()
	}
	return UnknownCommand(cmd, args[0])
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

// ResourceArgs takes exactly the arguments that the usage line names.
func ResourceArgs(names ...string) cobra.PositionalArgs {
	return func(_ *cobra.Command, args []string) error {
		switch {
		case len(args) < len(names):
			return fail.Usagef("%s is missing", names[len(args)])
		case len(args) > len(names):
			return fail.Usagef("unexpected argument %q", args[len(names)])
		}
		return nil
	}
}

// TextOnly annotates a command whose output is text by nature, so that -o json does not apply to it.
const TextOnly = "azconc-text-only"

// UnknownCommand is the error for a word that is no verb of cmd, with those that it may have been.
func UnknownCommand(cmd *cobra.Command, word string) error {
	if cmd.SuggestionsMinimumDistance <= 0 {
		cmd.SuggestionsMinimumDistance = 2
	}
	err := fail.Usagef("unknown command %q for %q", word, cmd.CommandPath())
	if s := suggestions(cmd, word); len(s) > 0 {
		return fail.WithHint(err, fmt.Sprintf("did you mean %s?", strings.Join(s, " or ")))
	}
	return err
}
