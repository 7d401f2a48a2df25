package cli

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/azconc/azconc/cmd/azconc/internal/cli/fail"
	"github.com/azconc/azconc/cmd/azconc/internal/cli/show"
)

// NewGroupCmd returns a command that only has verbs. Without a verb it prints its help; for an unknown one it suggests
// others.
func NewGroupCmd(use, short string, verbs ...*cobra.Command) *cobra.Command {
	cmd := &cobra.Command{Use: use + " <command>", Short: short, Args: cobra.ArbitraryArgs, RunE: RunGroup}
	cmd.AddCommand(verbs...)
	return cmd
}

func RunGroup(cmd *cobra.Command, _ []string) error {
	if err := UnknownVerb(cmd); err != nil {
		return err
	}
	return cmd.Help()
}

// UnknownVerb returns the error for a group that was given a word that is none of its verbs. It is nil for any other command
// line, and for a command that is no group.
func UnknownVerb(cmd *cobra.Command) error {
	if !cmd.HasSubCommands() || cmd.Flags().NArg() == 0 {
		return nil
	}
	return UnknownCommand(cmd, cmd.Flags().Arg(0))
}

// others are words for verbs that people know from other tools.
var others = map[string]string{"upload": "put", "download": "get", "force-unlock": "unlock", "acquire": "run"}

// suggestions returns the verbs that the user may have meant, the most likely first: those of cmd, or else those of the groups below it.
func suggestions(cmd *cobra.Command, word string) []string {
	cmd.SuggestionsMinimumDistance = 2
	s := cmd.SuggestionsFor(word)
	for _, c := range cmd.Commands() {
		if c.IsAdditionalHelpTopicCommand() && show.InCommon(c.Name(), word) > 2 || c.Name() == others[word] {
			s = append(s, c.Name())
		}
	}
	slices.SortStableFunc(s, func(a, b string) int { return cmp.Compare(show.InCommon(b, word), show.InCommon(a, word)) })
	for _, c := range cmd.Commands() {
		if len(s) > 0 && !strings.Contains(s[0], " ") {
			break
		}
		for _, below := range suggestions(c, word) {
			s = append(s, c.Name()+" "+below)
		}
	}
	return s[:min(len(s), 3)]
}

// ResourceArgs accepts exactly the arguments in the usage line.
func ResourceArgs(names ...string) cobra.PositionalArgs {
	return func(cmd *cobra.Command, args []string) error {
		switch {
		case len(args) < len(names):
			return fail.Usagef("%s is missing", names[len(args)])
		case len(args) > len(names):
			extra := args[len(names)]
			err := fail.Usagef("unexpected argument %q", extra)
			if flag := flagFor(cmd, extra); flag != "" {
				return fail.WithHint(err, "did you mean --"+flag+" "+show.Quote(extra)+"?")
			}
			return err
		}
		return nil
	}
}

// flagFor returns the flag for which an argument without one is perhaps meant, or "".
func flagFor(cmd *cobra.Command, arg string) string {
	if cmd.Flags().Lookup("set") != nil && strings.Contains(arg, "=") {
		return "set"
	}
	if file := cmd.Flags().Lookup("file"); file != nil && !file.Changed {
		return "file"
	}
	return ""
}

// TextOnly annotates a command whose output is text by nature, so that -o json does not apply to it.
const TextOnly = "azconc-text-only"

// UnknownCommand returns the error for an unknown verb of cmd, with suggestions.
func UnknownCommand(cmd *cobra.Command, word string) error {
	err := fail.Usagef("unknown command %q for %q", word, cmd.CommandPath())
	if s := suggestions(cmd, word); len(s) > 0 {
		return fail.WithHint(err, fmt.Sprintf("did you mean %s?", strings.Join(s, " or ")))
	}
	return err
}
