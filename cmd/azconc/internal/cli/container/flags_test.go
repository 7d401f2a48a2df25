package container

import (
	"testing"

	"github.com/azconc/azconc/cmd/azconc/internal/cli/clitest"
)

func TestContainerFlags(t *testing.T) {
	clitest.CheckUsage(t, NewCmd, []clitest.UsageCase{
		{Args: []string{"create", "Jobs"}, Err: "not a container's name"},
		{Args: []string{"create"}, Err: "<container> is missing"},
		{Args: []string{"delete", "jobs", "--if-match", "x"}, Err: "unknown flag: --if-match"},
		{Args: []string{"delete", "jobs", "--if-modified-since", "2026-01-01", "--if-unmodified-since", "2026-01-01"}, Err: "cannot both be given"},
		{Args: []string{"show", "$web"}, Err: "no account is given"},
		{Args: []string{"list", "--prefix", "j"}, Err: "no account is given"},
		{Args: []string{"list", "jobs"}, Err: "unexpected argument"},
		{Args: []string{"metadata", "set"}, Err: "<container> is missing"},
		{Args: []string{"metadata", "update", "jobs"}, Err: "no change is given"},
	})
}
