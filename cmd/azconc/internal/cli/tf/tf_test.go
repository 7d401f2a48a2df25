package tf

import (
	"testing"
	"time"

	"github.com/azconc/azconc/cmd/azconc/internal/cli/clitest"
)

func TestRunFlags(t *testing.T) {
	clitest.CheckFlags(t, runVerb(), []clitest.FlagCase[runOptions]{
		{Args: []string{"states/s", "--", "terraform", "apply", "-auto-approve"}, Want: runOptions{State: clitest.Ref("states", "s"), Command: []string{"terraform", "apply", "-auto-approve"}, Duration: 45 * time.Second}},
		{Args: []string{"states/s", "--duration", "15", "--no-snapshot", "--", "tofu"}, Want: runOptions{State: clitest.Ref("states", "s"), Command: []string{"tofu"}, Duration: 15 * time.Second, NoSnapshot: true}},
		{Args: []string{"states/s"}, Err: "<command> is missing"},
		{Args: []string{"states/s", "x", "--", "tofu"}, Err: `unexpected argument "x"`},
		{Args: []string{"--", "tofu"}, Err: "<container/state> is missing"},
		{Args: []string{"states", "--", "tofu"}, Err: "does not name a state"},
		{Args: []string{"states/s", "--duration", "61s", "--", "tofu"}, Err: "--duration 61s"},
		{Args: []string{"states/s", "--duration", "infinite", "--", "tofu"}, Err: "--duration infinite"},
		{Args: []string{"states/s", "-o", "json", "--", "tofu"}, Err: "-o json"},
	})
}
