package cli

import (
	"context"
	"fmt"
	"io"

	"github.com/spf13/cobra"

	"github.com/azconc/azconc/pkg/azurite"
)

type devInstallOptions struct {
	factory *Factory
}

func newDevInstallCmd(f *Factory, runF func(*devInstallOptions) error) *cobra.Command {
	opts := &devInstallOptions{factory: f}
	return &cobra.Command{
		Use:   "install",
		Short: "Install Azurite now rather than on first use",
		Long: `Install Azurite now rather than on first use, and print the directory it is in.

It comes from npm, in the version and with the dependencies that this azconc was built for, and goes into the user's cache
directory. Node.js 20 or newer is needed. AZCONC_AZURITE_DIR names an existing copy to use instead.`,
		Args:    resourceArgs(),
		Example: "  azconc dev install",
		RunE: func(cmd *cobra.Command, _ []string) error {
			if runF != nil {
				return runF(opts)
			}
			return devInstallRun(cmd.Context(), opts)
		},
	}
}

type devInstallResult struct {
	Outcome string `json:"outcome"`
	Version string `json:"version"`
	Dir     string `json:"dir"`
}

func (r devInstallResult) text(w io.Writer) { fmt.Fprintln(w, r.Dir) }

func devInstallRun(ctx context.Context, opts *devInstallOptions) error {
	dir, err := azurite.Install(ctx, &azurite.InstallOptions{Progress: &notes{f: opts.factory}})
	if err != nil {
		return opts.factory.azuriteError(err)
	}
	return opts.factory.Print(devInstallResult{Outcome: "installed", Version: azurite.Version, Dir: dir})
}
