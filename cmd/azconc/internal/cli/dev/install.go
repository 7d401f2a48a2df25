package dev

import (
	"context"
	"fmt"
	"io"

	"github.com/spf13/cobra"

	"github.com/azconc/azconc/cmd/azconc/internal/cli"
	"github.com/azconc/azconc/pkg/azurite"
)

type installOptions struct {
	factory *cli.Factory
}

func newInstallCmd(f *cli.Factory, runF func(*installOptions) error) *cobra.Command {
	opts := &installOptions{factory: f}
	return &cobra.Command{
		Use:   "install",
		Short: "Install Azurite now rather than on first use",
		Long: `Install Azurite now rather than on first use, and print the directory it is in.

It comes from npm, in the version and with the dependencies that this azconc was built for, and goes into the user's cache
directory. Node.js 20 or newer is needed. AZCONC_AZURITE_DIR names an existing copy to use instead.`,
		Args:    cli.ResourceArgs(),
		Example: "  azconc dev install",
		RunE: func(cmd *cobra.Command, _ []string) error {
			if runF != nil {
				return runF(opts)
			}
			return installRun(cmd.Context(), opts)
		},
	}
}

type installResult struct {
	Outcome string `json:"outcome"`
	Version string `json:"version"`
	Dir     string `json:"dir"`
}

func (r installResult) Text(w io.Writer) { fmt.Fprintln(w, r.Dir) }

func installRun(ctx context.Context, opts *installOptions) error {
	dir, err := azurite.Install(ctx, &azurite.InstallOptions{Progress: &notes{f: opts.factory}})
	if err != nil {
		return azuriteError(opts.factory, err)
	}
	return opts.factory.Print(installResult{Outcome: "installed", Version: azurite.Version, Dir: dir})
}
