package root

import (
	"fmt"
	"io"
	"runtime"
	"runtime/debug"

	"github.com/spf13/cobra"

	"github.com/azconc/azconc/cmd/azconc/internal/cli"
)

// Version is set when a release is built; otherwise the build's own information says what this is.
var Version string

type versionOptions struct {
	factory *cli.Factory
}

func newVersionCmd(f *cli.Factory, runF func(*versionOptions) error) *cobra.Command {
	opts := &versionOptions{factory: f}
	return &cobra.Command{
		Use:     "version",
		Short:   "Print the version",
		Args:    cli.ResourceArgs(),
		Example: "  azconc version -o json",
		RunE: func(*cobra.Command, []string) error {
			if runF != nil {
				return runF(opts)
			}
			return versionRun(opts)
		},
	}
}

type versionResult struct {
	Outcome string `json:"outcome"`
	Version string `json:"version"`
	Commit  string `json:"commit,omitempty"`
	Go      string `json:"go"`
	System  string `json:"system"`
}

func (r versionResult) Text(w io.Writer) {
	fmt.Fprintf(w, "azconc %s (%s, %s)\n", r.Version, r.Go, r.System)
}

func versionRun(opts *versionOptions) error {
	r := versionResult{Outcome: "ok", Version: Version, Go: runtime.Version(), System: runtime.GOOS + "/" + runtime.GOARCH}
	if info, ok := debug.ReadBuildInfo(); ok {
		if r.Version == "" {
			r.Version = info.Main.Version
		}
		for _, s := range info.Settings {
			if s.Key == "vcs.revision" {
				r.Commit = s.Value
			}
		}
	}
	return opts.factory.Print(r)
}
