package root

import (
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/azconc/azconc/cmd/azconc/internal/cli"
	"github.com/azconc/azconc/cmd/azconc/internal/cli/fail"
	"github.com/azconc/azconc/pkg/aztest"
)

// TestATryIsBounded has one request of each verb hang, and looks when it is given up and sent again.
func TestATryIsBounded(t *testing.T) {
	content := strings.Repeat("x", 640<<10)
	for _, c := range []struct {
		args, op string
		atLeast  time.Duration
	}{
		{"blob put jobs/a --file - --try-timeout 5", "Put Blob", 5 * time.Second},
		{"blob put jobs/a --file - --try-timeout 5 --min-rate 65536", "Put Blob", 15 * time.Second},
		{"blob put jobs/a --file - --try-timeout 5 --min-rate 32768", "Put Blob", 25 * time.Second},
		{"blob update jobs/old --file - --try-timeout 5 --min-rate 32768", "Put Blob", 25 * time.Second},
		{"blob append jobs/log --create --file - --try-timeout 5 --min-rate 32768", "Append Block", 25 * time.Second},
		{"blob block put jobs/b --id 1 --file - --try-timeout 5 --min-rate 32768", "Put Block", 25 * time.Second},
		{"blob get jobs/old --file /dev/null --try-timeout 5 --min-rate 32768", "Get Blob", 5 * time.Second},
	} {
		synctest.Test(t, func(t *testing.T) {
			s := aztest.New(nil)
			if _, err := s.BlockBlob("jobs", "old").UploadBuffer(t.Context(), []byte(content), nil); err != nil {
				t.Fatal(err)
			}
			s.SetFaults(aztest.Fault{Kind: aztest.Hang, Match: aztest.Op(c.op), Count: 1})
			began := time.Now()
			r := runOn(t.Context(), s, func(s *cli.Streams) { s.In = strings.NewReader(content + "!") }, nil, strings.Fields(c.args)...)
			if took := time.Since(began); r.code != 0 || took < c.atLeast || took > c.atLeast+25*time.Second {
				t.Errorf("azconc %s: exit %d after %v, %s, want a second try after %v", c.args, r.code, took, r.stderr, c.atLeast)
			}
		})
	}
}

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
