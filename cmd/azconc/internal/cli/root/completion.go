package root

import (
	"io"

	"github.com/spf13/cobra"

	"github.com/azconc/azconc/cmd/azconc/internal/cli"
	"github.com/azconc/azconc/cmd/azconc/internal/cli/fail"
)

func newCompletionCmd(f *cli.Factory) *cobra.Command {
	return &cobra.Command{
		Use:   "completion {bash | zsh | fish | powershell}",
		Short: "Print a completion script for a shell",
		Long: `Print a script with which a shell completes commands, flags, and names that the account has. Load it when the shell starts:

  ~/.bashrc                   source <(azconc completion bash)
  ~/.zshrc, after compinit    source <(azconc completion zsh)
  ~/.config/fish/config.fish  azconc completion fish | source
  PowerShell's $PROFILE       azconc completion powershell | Out-String | Invoke-Expression

Names come from the account that the environment or the flags before the cursor name. If it does not answer within 2 seconds,
none are offered, nor are names that a shell would require to be quoted.`,
		Args:        cli.ResourceArgs("the shell"),
		ValidArgs:   []string{"bash", "zsh", "fish", "powershell"},
		Annotations: map[string]string{cli.TextOnly: "true"},
		Example:     "  source <(azconc completion bash)",
		RunE:        func(cmd *cobra.Command, args []string) error { return completion(cmd.Root(), f.Content(), args[0]) },
	}
}

// bashWords replaces a function of cobra's script that needs the package bash-completion. Without the package it joins the words
// that bash separates at = and : itself.
const bashWords = `
__azconc_init_completion()
{
    COMPREPLY=()
    if declare -F _get_comp_words_by_ref >/dev/null; then
        _get_comp_words_by_ref "$@" cur prev words cword
        return
    fi
    local i rest=${COMP_LINE:0:COMP_POINT} word joined='' separator=''
    words=() cword=-1
    for ((i = 0; i <= COMP_CWORD; i++)); do
        word=${COMP_WORDS[i]}
        joined=1
        if [[ $i == 0 || $rest == [[:space:]]* ]]; then
            joined=''
            rest=${rest#"${rest%%[![:space:]]*}"}
        fi
        if ((i == COMP_CWORD)); then
            word=$rest
        fi
        rest=${rest#"$word"}
        if [[ $joined && ($word == [=:]* || $separator) ]]; then
            words[cword]+=$word
        else
            words[++cword]=$word
        fi
        separator=''
        if [[ $word == *[=:] ]]; then
            separator=1
        fi
    done
    cur=${words[cword]}
    prev=''
    if ((cword > 0)); then
        prev=${words[cword - 1]}
    fi
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
