package root

import (
	"strings"
	"testing"

	"github.com/azconc/azconc/cmd/azconc/internal/cli"
	"github.com/azconc/azconc/cmd/azconc/internal/cli/fail"
	"github.com/azconc/azconc/pkg/aztest"
)

func TestContentThatIsTooLargeNamesTheFlag(t *testing.T) {
	s := aztest.New(nil)
	if _, err := s.BlockBlob("jobs", "a").UploadBuffer(t.Context(), []byte("0123456789"), nil); err != nil {
		t.Fatal(err)
	}
	for _, args := range []string{"blob update jobs/a --exec cat --max-size 9", "blob edit jobs/a --max-size 9"} {
		r := runOn(t.Context(), s, nil, cli.Env{"EDITOR=true"}, strings.Fields(args)...)
		if r.code != fail.ExitFailed || !strings.Contains(r.stderr, "the content has more than the 9 B that --max-size allows") || !strings.Contains(r.stderr, "azconc: hint: --max-size raises") {
			t.Errorf("azconc %s: exit %d, %s", args, r.code, r.stderr)
		}
	}
	if r := runOn(t.Context(), s, nil, nil, "blob", "update", "jobs/a", "--exec", "cat", "--max-size", "10"); r.code != 0 {
		t.Errorf("exactly as much: %+v", r)
	}
}
