package root

import (
	"strings"
	"testing"
	"testing/synctest"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/azconc/azconc/cmd/azconc/internal/cli"
	"github.com/azconc/azconc/optimistic/blobs"
	"github.com/azconc/azconc/pessimistic"
	"github.com/azconc/azconc/pkg/aztest"
	"github.com/azconc/azconc/pkg/aztest/bubble"
)

// TestEachListHasOneRowForAName: a line break in the name of a lock made two rows of one in lock gc, and a list of handles printed what
// turns the direction of a line.
func TestEachListHasOneRowForAName(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := aztest.New(nil)
		do := func(args ...string) ran {
			t.Helper()
			return runOn(t.Context(), s, func(s *cli.Streams) { s.In = strings.NewReader("x") }, allServices, args...)
		}
		for _, noun := range []string{"container", "share"} {
			if r := do(noun, "create", "jobs"); r.code != 0 {
				t.Fatal(r)
			}
		}
		locker, err := pessimistic.NewLocker(s.Container("jobs"), &pessimistic.LockerOptions{Owner: "web\n1"})
		if err != nil {
			t.Fatal(err)
		}
		for _, name := range []string{"a\nb", "a\tb", "\u202eevil"} {
			h, err := locker.Lock(t.Context(), name, nil)
			if err != nil {
				t.Fatal(err)
			}
			if err := h.Release(t.Context()); err != nil {
				t.Fatal(err)
			}
		}
		if r := do("file", "put", "jobs/\u202ea", "--file", "-"); r.code != 0 {
			t.Fatal(r)
		}
		if status := s.OpenSMB("jobs", "\u202ea", aztest.SMBHandle{ClientName: "pc\n7"}); status != aztest.SMBOpened {
			t.Fatal(status)
		}
		for _, id := range []string{"a\nb", "a\xffc", "a-d"} {
			if _, err := blobs.StageBlock(t.Context(), s.BlockBlob("jobs", "big"), id, []byte("x"), nil); err != nil {
				t.Fatal(err)
			}
		}
		bubble.Sleep(30 * 24 * time.Hour)
		for line, rows := range map[string]int{
			"blob block list jobs/big": 3, "lock list jobs": 3, "lock list jobs -o tsv": 3, "lock gc jobs --dry-run": 3, "lock gc jobs --dry-run -o tsv --query locks": 3,
			"file list jobs": 1, "file list jobs -o tsv": 1, "file handles list jobs/ --recursive": 1, "file handles list jobs/ --recursive -o tsv": 1,
		} {
			r := do(strings.Fields(line)...)
			lines := strings.Split(strings.TrimSuffix(r.out, "\n"), "\n")
			if r.code != 0 || len(lines) != rows || strings.ContainsFunc(r.out, func(c rune) bool { return c != '\n' && c != '\t' && (c == utf8.RuneError || !unicode.IsPrint(c)) }) {
				t.Errorf("azconc %s: exit %d, %q, want %d rows of what can be printed", line, r.code, r.out, rows)
			}
		}
		var ids []string
		for line := range strings.Lines(do("blob", "block", "list", "jobs/big").out) {
			ids = append(ids, strings.Fields(line)[2])
		}
		if r := do(append([]string{"blob", "block", "commit", "jobs/big"}, ids...)...); r.code != 0 {
			t.Errorf("azconc blob block commit jobs/big %q: %+v", ids, r)
		}
		for line := range strings.Lines(do("lock", "gc", "jobs", "--dry-run").out) {
			name := strings.TrimPrefix(strings.TrimSpace(line), "would delete ")
			if r := do("lock", "show", name); r.code != 0 {
				t.Errorf("azconc lock show %s: %+v", name, r)
			}
		}
	})
}
