package container

import (
	"testing"

	"github.com/azconc/azconc/cmd/azconc/internal/cli/clitest"
)

func TestContainerFlags(t *testing.T) {
	clitest.CheckFlags(t, createVerb(), []clitest.FlagCase[createOptions]{
		{Args: []string{"jobs", "--metadata", "a=b"}, Want: createOptions{Container: clitest.Ref("jobs", ""), Metadata: map[string]string{"a": "b"}}},
		{Args: []string{"Jobs"}, Err: "upper-case"},
	})
	clitest.CheckFlags(t, deleteVerb(), []clitest.FlagCase[deleteOptions]{
		{Args: []string{"jobs"}, Want: deleteOptions{Container: clitest.Ref("jobs", "")}},
		{Args: []string{"jobs", "--if-match", "x"}, Err: "unknown flag: --if-match"},
		{Args: []string{"jobs", "--if-modified-since", "2026-01-01", "--if-unmodified-since", "2026-01-01"}, Err: "cannot both be given"},
	})
	clitest.CheckFlags(t, showVerb(), []clitest.FlagCase[showOptions]{
		{Args: []string{"$web"}, Want: showOptions{Container: clitest.Ref("$web", "")}},
	})
	clitest.CheckFlags(t, listVerb(), []clitest.FlagCase[listOptions]{
		{Args: []string{"--prefix", "j"}, Want: listOptions{Prefix: "j"}},
		{Args: []string{"jobs"}, Err: "unexpected argument"},
	})
}
