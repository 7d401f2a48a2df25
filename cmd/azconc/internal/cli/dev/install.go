package dev

import (
	"context"
	"fmt"
	"io"

	"github.com/azconc/azconc/cmd/azconc/internal/cli"
	"github.com/azconc/azconc/cmd/azconc/internal/cli/engine"
	"github.com/azconc/azconc/pkg/azurite"
)

type installOptions struct {
}

func installVerb() cli.Verb[installOptions] {
	return cli.Verb[installOptions]{
		Use:   "install",
		Short: "Install Azurite now rather than on first use",
		Long: `Install Azurite now rather than on first use, and print the directory it is in.

Azurite is what --engine azurite runs. It comes from npm, at the version that this azconc was built for and with pinned dependencies, and is stored in the user's
cache directory. Node.js 20 or newer is needed. AZCONC_AZURITE_DIR names an existing copy to use instead.`,
		Example: "  azconc dev install",
		Run:     installRun,
	}
}

type installResult struct {
	Outcome string `json:"outcome"`
	Version string `json:"version"`
	Dir     string `json:"dir"`
}

func (r installResult) Text(w io.Writer) { fmt.Fprintln(w, r.Dir) }

func installRun(ctx context.Context, f *cli.Factory, opts *installOptions) error {
	dir, err := azurite.Install(ctx, engine.Notes(f))
	if err != nil {
		return engine.Explain(f, err)
	}
	return f.Print(installResult{Outcome: "installed", Version: azurite.Version, Dir: dir})
}
