package root

import (
	"github.com/spf13/cobra"

	"github.com/azconc/azconc/cmd/azconc/internal/cli"
	"github.com/azconc/azconc/cmd/azconc/internal/cli/fail"
)

type completionOptions struct {
	factory *cli.Factory
	Shell   string
}

func newCompletionCmd(f *cli.Factory, runF func(*cobra.Command, *completionOptions) error) *cobra.Command {
	opts := &completionOptions{factory: f}
	return &cobra.Command{
		Use:         "completion {bash | zsh | fish | powershell}",
		Short:       "Print a completion script for a shell",
		Args:        cli.ResourceArgs("the shell"),
		ValidArgs:   []string{"bash", "zsh", "fish", "powershell"},
		Annotations: map[string]string{cli.TextOnly: "true"},
		Example:     "  source <(azconc completion bash)",
		RunE: func(cmd *cobra.Command, args []string) error {
			opts.Shell = args[0]
			if runF != nil {
				return runF(cmd, opts)
			}
			return completionRun(cmd.Root(), opts)
		},
	}
}

func completionRun(root *cobra.Command, opts *completionOptions) error {
	out := opts.factory.Content()
	switch opts.Shell {
	case "bash":
		return root.GenBashCompletionV2(out, true)
	case "zsh":
		return root.GenZshCompletion(out)
	case "fish":
		return root.GenFishCompletion(out, true)
	case "powershell":
		return root.GenPowerShellCompletionWithDesc(out)
	}
	return fail.WithHint(fail.Usagef("%q is not a shell that azconc supports", opts.Shell), "the shells are bash, zsh, fish and powershell")
}
