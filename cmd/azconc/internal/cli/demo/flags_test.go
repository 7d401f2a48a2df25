package demo

import (
	"testing"

	"go.uber.org/goleak"

	"github.com/azconc/azconc/cmd/azconc/internal/cli/clitest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func TestUsage(t *testing.T) {
	clitest.CheckUsage(t, NewCmd, []clitest.UsageCase{
		{Args: []string{"--scene", "nowhere"}, Err: `--scene "nowhere" is not the name of a scene`},
		{Args: []string{"--account-name", "a", "--engine", "azurite"}, Err: "--engine starts an emulator"},
	})
}
