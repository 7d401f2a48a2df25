package root

import (
	"strings"
	"testing"
	"testing/synctest"

	"github.com/azconc/azconc/cmd/azconc/internal/cli/fail"
	"github.com/azconc/azconc/pkg/aztest"
)

func TestAWordThatIsNearlyRightIsAnsweredByTheRightOne(t *testing.T) {
	for line, want := range map[string]string{
		"blob lease acqire":           "did you mean acquire?",
		"acqire":                      "did you mean blob lease acquire or ",
		"blob acqire":                 "did you mean lease acquire?",
		"upload":                      "did you mean blob put or file put?",
		"blob upload":                 "did you mean put?",
		"file download":               "did you mean get?",
		"force-unlock":                "did you mean tf unlock?",
		"tf force-unlock":             "did you mean unlock?",
		"semaphore acquire":           "did you mean run?",
		"blob update jobs/a --jqq .":  "did you mean --jq?",
		"blob put jobs/a --if-mach x": "did you mean --if-match?",
	} {
		if r := runOn(t.Context(), nil, nil, nil, strings.Fields(line)...); r.code != fail.ExitUsage || !strings.Contains(r.stderr, want) {
			t.Errorf("%s: exit %d, %s, want %q", line, r.code, r.stderr, want)
		}
	}
	if r := runOn(t.Context(), nil, nil, nil, "blob", "update", "jobs/a", "--nothing-like-it"); r.code != fail.ExitUsage || strings.Contains(r.stderr, "did you mean") {
		t.Error(r.stderr)
	}
}

func TestWhatIsMissingIsNamed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := aztest.New(nil)
		for _, c := range []struct {
			line, want string
			code       int
		}{
			{"container create jobs", "", 0},
			{"lock show jobs/x", "not found: there is no lock jobs/x", 3},
			{"tf show jobs/s", "not found: there is no state jobs/s", 3},
			{"tf unlock jobs/s", "not found: there is no state jobs/s", 3},
			{"blob show jobs/b", "not found: there is no blob jobs/b", 3},
			{"blob copy jobs/b jobs/c", "not found: there is no blob jobs/b", 3},
			{"blob metadata show jobs/b", "not found: there is no blob jobs/b", 3},
			{"blob lease show jobs/b", "not found: there is no blob jobs/b", 3},
			{"share create docs", "", 0},
			{"file show docs/f", "not found: there is no file docs/f", 3},
			{"lock show none/x", "not found: there is no container none", 3},
			{"lock run jobs/x --metrics bogus -- true", `--metrics "bogus" is not an address`, 2},
		} {
			if r := runOn(t.Context(), s, nil, allServices, strings.Fields(c.line)...); r.code != c.code || !strings.Contains(r.stderr, c.want) || strings.Contains(r.stderr, "NotFound") {
				t.Errorf("%s: exit %d, %s, want %q", c.line, r.code, r.stderr, c.want)
			}
		}
	})
}
