package root

import (
	"slices"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/azconc/azconc/cmd/azconc/internal/cli"
	"github.com/azconc/azconc/pkg/aztest"
)

// Scripts use the earlier names of verbs and flags. They do what the present ones do, and are not offered.
func TestEarlierNamesWork(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := aztest.New(nil)
		do := func(line string) ran {
			return runOn(t.Context(), s, func(s *cli.Streams) { s.In = strings.NewReader("eA==") }, allServices, strings.Fields(line)...)
		}
		for _, line := range []string{"table create jobs", "table insert jobs/eu/1 --set n=1", "table insert jobs/eu/2 --set n=2", "queue create orders",
			"queue send orders --file - --encoding text", "container create jobs", "blob put jobs/a --file -"} {
			if r := do(line); r.code != 0 {
				t.Fatal(line, r)
			}
		}
		const id = " jobs/a 1f812371-a41d-49e6-b123-f4b542e851c5"
		for _, c := range []struct{ before, now, out string }{
			{"table query jobs --top 1", "table query jobs --max 1", `"n":1}`},
			{"table query jobs --top=1", "table query jobs --max=1", `"n":1}`},
			{"table query jobs --top 0", "table query jobs --max 0", ""},
			{"queue peek orders --decode none", "queue peek orders --encoding text", "eA=="},
			{"queue peek orders --decode base64", "queue peek orders --encoding base64", "x"},
			{"queue peek orders --decode morse", "queue peek orders --encoding morse", ""},
			{"blob copy-abort" + id, "blob abort-copy" + id, ""},
		} {
			before, now := do(c.before), do(c.now)
			if before.code != now.code || before.out != now.out || !strings.Contains(now.out, c.out) || c.out != "" && now.code != 0 {
				t.Errorf("%s: %+v\n%s: %+v", c.before, before, c.now, now)
			}
		}
		for _, c := range []struct{ words, earlier string }{{"table query jobs --", "--top"}, {"queue peek orders --", "--decode"}, {"queue receive orders --", "--decode"}, {"blob ", "copy-abort"}} {
			if offered := completed(t, silent(t), strings.Split(c.words, " ")...); slices.Contains(offered, c.earlier) {
				t.Errorf("%s: %s is offered", c.words, c.earlier)
			}
		}
	})
}
