package main

import (
	"os"
	"path/filepath"
	"runtime"
	"testing"

	"github.com/rogpeppe/go-internal/testscript"

	"github.com/azconc/azconc/pkg/azurite"
	"github.com/azconc/azconc/pkg/azurite/azuritetest"
)

// TestDevScripts runs testdata/dev/*.txtar, in which azconc starts Azurite itself.
func TestDevScripts(t *testing.T) {
	t.Parallel()
	if os.Getenv(azuritetest.SkipVariable) == "1" {
		t.Skipf("%s=1: not tested against Azurite", azuritetest.SkipVariable)
	}
	if testing.Short() {
		t.Skip("SKIP: scripts/test itself starts Azurite by azconc dev run, and this is a short run")
	}
	// Scripts have no home, hence no cache.
	dir, err := azurite.Install(t.Context(), nil)
	if err != nil {
		t.Fatal(err)
	}
	testscript.Run(t, testscript.Params{
		Dir:                 filepath.Join("testdata", "dev"),
		RequireExplicitExec: true,
		Setup: func(env *testscript.Env) error {
			env.Setenv(azurite.DirVariable, dir)
			env.Setenv("GORACE", os.Getenv("GORACE"))
			nowhere := filepath.Join(env.WorkDir, "nowhere")
			if err := os.Mkdir(nowhere, 0o755); err != nil {
				return err
			}
			azconc := "azconc"
			if runtime.GOOS == "windows" {
				azconc += ".exe"
			}
			self, err := os.Executable()
			if err != nil {
				return err
			}
			env.Setenv("NOWHERE", nowhere)
			return os.Symlink(self, filepath.Join(nowhere, azconc))
		},
		Cmds: map[string]func(*testscript.TestScript, bool, []string){"exits": exits},
	})
}
