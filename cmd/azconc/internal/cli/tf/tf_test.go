package tf

import (
	"testing"

	"github.com/azconc/azconc/cmd/azconc/internal/cli/clitest"
)

func TestRunFlags(t *testing.T) {
	clitest.CheckUsage(t, NewCmd, []clitest.UsageCase{
		{Args: []string{"run", "states/s"}, Err: "<command> is missing"},
		{Args: []string{"run", "states/s", "x", "--", "tofu"}, Err: `unexpected argument "x"`},
		{Args: []string{"run", "--", "tofu"}, Err: "<container/state> is missing"},
		{Args: []string{"run", "states", "--", "tofu"}, Err: "does not name a state"},
		{Args: []string{"run", "states/s", "--duration", "61s", "--", "tofu"}, Err: "--duration 1m1s is not between 15s and 1m"},
		{Args: []string{"run", "states/s", "--duration", "infinite", "--", "tofu"}, Err: "not a duration"},
		{Args: []string{"run", "states/s", "-o", "json", "--", "tofu"}, Err: "-o json"},
	})
}
