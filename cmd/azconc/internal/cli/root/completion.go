package root

import (
	"io"

	"github.com/spf13/cobra"

	"github.com/azconc/azconc/cmd/azconc/internal/cli"
	"github.com/azconc/azconc/cmd/azconc/internal/cli/fail"
)

func newCompletionCmd(f *cli.Factory) *cobra.Command {
	return &cobra.Command{
		Use:         "completion {bash | zsh | fish | powershell}",
		Short:       "Print a completion script for a shell",
		Args:        cli.ResourceArgs("the shell"),
		ValidArgs:   []string{"bash", "zsh", "fish", "powershell"},
		Annotations: map[string]string{cli.TextOnly: "true"},
		Example:     "  source <(azconc completion bash)",
		RunE:        func(cmd *cobra.Command, args []string) error { return completion(cmd.Root(), f.Content(), args[0]) },
	}
}

func completion(root *cobra.Command, out io.Writer, shell string) error {
	switch shell {
	case "bash":
		return root.GenBashCompletionV2(out, true)
	case "zsh":
		return root.GenZshCompletion(out)
	case "fish":
		return root.GenFishCompletion(out, true)
	case "powershell":
		return root.GenPowerShellCompletionWithDesc(out)
	}
	return fail.WithHint(fail.Usagef("%q is not a shell that azconc supports", shell), "the shells are bash, zsh, fish and powershell")
}
