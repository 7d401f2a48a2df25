package demo

import (
	"testing"

	"go.uber.org/goleak"

	"github.com/azconc/azconc/cmd/azconc/internal/cli/clitest"
	"github.com/azconc/azconc/cmd/azconc/internal/cli/engine"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func TestFlags(t *testing.T) {
	clitest.CheckFlags(t, verb(), []clitest.FlagCase[options]{
		{Args: []string{"--scene", "nowhere"}, Err: `--scene "nowhere" is not the name of a scene`},
		{Args: []string{"--account-name", "a", "--engine", "azurite"}, Err: "--engine starts an emulator"},
		{Args: []string{"--scene", "editors,lease", "--scene", "files"}, Want: options{Engine: engine.Options{Engine: engine.Memory}, Scenes: []string{"editors", "lease", "files"}}},
	})
}
