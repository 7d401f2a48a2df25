package root

import (
	"context"
	"fmt"
	"io"
	"runtime"
	"runtime/debug"

	"github.com/azconc/azconc/cmd/azconc/internal/cli"
)

// Version and Commit are set when a release is built; otherwise the build's own information says what this is.
var Version, Commit string

func versionVerb() cli.Verb[struct{}] {
	return cli.Verb[struct{}]{
		Use:     "version",
		Short:   "Print the version",
		Example: "  azconc version -o json",
		Run:     versionRun,
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
	commit := ""
	if r.Commit != "" {
		commit = fmt.Sprintf("commit %.12s, ", r.Commit)
	}
	fmt.Fprintf(w, "azconc %s (%s%s, %s)\n", r.Version, commit, r.Go, r.System)
}

func versionRun(_ context.Context, f *cli.Factory, _ *struct{}) error {
	r := versionResult{Outcome: "ok", Version: Version, Commit: Commit, Go: runtime.Version(), System: runtime.GOOS + "/" + runtime.GOARCH}
	if info, ok := debug.ReadBuildInfo(); ok {
		if r.Version == "" {
			r.Version = info.Main.Version
		}
		for _, s := range info.Settings {
			if s.Key == "vcs.revision" && r.Commit == "" {
				r.Commit = s.Value
			}
		}
	}
	return f.Print(r)
}
