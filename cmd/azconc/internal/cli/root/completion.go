package root

import (
	"io"
	"regexp"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/azconc/azconc/cmd/azconc/internal/cli"
	"github.com/azconc/azconc/cmd/azconc/internal/cli/fail"
)

func newCompletionCmd(f *cli.Factory) *cobra.Command {
	return &cobra.Command{
		Use:   "completion {bash | zsh | fish | powershell}",
		Short: "Print a completion script for a shell",
		Long: `Print a script with which a shell completes commands, flags, the values that the help lists and, if the line or the environment
names an account, names in it: containers, blobs after container/, queues, tables, shares and files. Names cost one request, which lists
100 at most and ends after 0.5 s. Load the script when the shell starts:

  ~/.bashrc                   source <(azconc completion bash)
  ~/.zshrc, after compinit    source <(azconc completion zsh)
  ~/.config/fish/config.fish  azconc completion fish | source
  PowerShell's $PROFILE       azconc completion powershell | Out-String | Invoke-Expression`,
		Args:        cli.ResourceArgs("the shell"),
		ValidArgs:   []string{"bash", "zsh", "fish", "powershell"},
		Annotations: map[string]string{cli.TextOnly: "true"},
		Example:     "  source <(azconc completion bash)",
		RunE:        func(cmd *cobra.Command, args []string) error { return completion(cmd.Root(), f.Content(), args[0]) },
	}
}

// bashWords replaces a function of cobra's script that needs the package bash-completion. Without the package a value after = is not
// completed, since bash takes it for a word of its own.
const bashWords = `
__azconc_init_completion()
{
    COMPREPLY=()
    if declare -F _get_comp_words_by_ref >/dev/null; then
        _get_comp_words_by_ref "$@" cur prev words cword
        return
    fi
    words=("${COMP_WORDS[@]}") cword=$COMP_CWORD
    cur=${words[cword]} prev=${words[cword - 1]}
}
`

// Completion writes the script for a shell: bash, zsh, fish or powershell.
func Completion(out io.Writer, shell string) error { return completion(Documented(), out, shell) }

func completion(root *cobra.Command, out io.Writer, shell string) error {
	switch shell {
	case "bash":
		if err := root.GenBashCompletionV2(out, true); err != nil {
			return err
		}
		_, err := io.WriteString(out, bashWords)
		return err
	case "zsh":
		return root.GenZshCompletion(out)
	case "fish":
		return root.GenFishCompletion(out, true)
	case "powershell":
		return root.GenPowerShellCompletionWithDesc(out)
	}
	return fail.WithHint(fail.Usagef("%q is not a shell that azconc supports", shell), "the shells are bash, zsh, fish and powershell")
}

// answerCompletion makes root answer a shell that completes a line: with commands, flags, names of the account, the words that the help of
// a flag lists, and local files where the help asks for one, but never on stderr. It does nothing if args are not such a request. A shell
// that gets no answer offers local files, which are wrong for the names of an account, so that is not the default.
func answerCompletion(f *cli.Factory, root *cobra.Command, args []string) {
	if len(args) < 2 || args[0] != cobra.ShellCompRequestCmd && args[0] != cobra.ShellCompNoDescRequestCmd {
		return
	}
	root.CompletionOptions.SetDefaultShellCompDirective(cobra.ShellCompDirectiveNoFileComp)
	f.Err = io.Discard
	root.SetErr(io.Discard)
	cmd, _, err := root.Find(args[1 : len(args)-1])
	if err != nil {
		cmd = root
	}
	if !cmd.HasSubCommands() && cmd.ValidArgs == nil && cmd.ValidArgsFunction == nil {
		cmd.ValidArgsFunction = completeArgument(f)
	}
	for ; cmd != nil; cmd = cmd.Parent() {
		cmd.FParseErrWhitelist.UnknownFlags = true
		cmd.LocalFlags().VisitAll(func(flag *pflag.Flag) {
			flag.Value = lenient{flag.Value}
			if complete := valuesOf(flag); complete != nil {
				_ = cmd.RegisterFlagCompletionFunc(flag.Name, complete) // fails only for a flag that has one
			}
		})
	}
}

// lenient is a flag whose value may be wrong, which is for the command to report. cobra would print all arguments, secrets among them.
type lenient struct{ pflag.Value }

func (l lenient) Set(text string) error {
	_ = l.Value.Set(text)
	return nil
}

var choice = regexp.MustCompile(`\{([a-z0-9-]+(?: \| [a-z0-9-]+)+)\}`)

// valuesOf completes the value of a flag: by the words in its help, or by local files. It is nil for a text that only the user knows.
func valuesOf(flag *pflag.Flag) cobra.CompletionFunc {
	if words := choice.FindStringSubmatch(flag.Usage); words != nil {
		return func(_ *cobra.Command, _ []string, start string) ([]string, cobra.ShellCompDirective) {
			other := func(word string) bool { return !strings.HasPrefix(word, start) }
			return slices.DeleteFunc(strings.Split(words[1], " | "), other), cobra.ShellCompDirectiveNoFileComp
		}
	}
	if kind, _ := pflag.UnquoteUsage(flag); slices.Contains([]string{"file", "path", "directory", "command"}, kind) {
		return cobra.FixedCompletions(nil, cobra.ShellCompDirectiveDefault)
	}
	return nil
}
