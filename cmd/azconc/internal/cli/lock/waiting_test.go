package lock

import (
	"strings"
	"testing"
	"time"

	"github.com/azconc/azconc/cmd/azconc/internal/cli"
	"github.com/azconc/azconc/pkg/observe"
)

// A log gets one line at first and then one a minute, however often the lock changes hands.
func TestAWaitIsNotedEveryMinute(t *testing.T) {
	for _, c := range []struct {
		terminal, quiet bool
		want            int
	}{{want: 3}, {terminal: true, want: 5}, {quiet: true}} {
		s, _, _, said := cli.TestStreams()
		s.ErrTerminal = c.terminal
		f := cli.NewFactory(s, nil)
		f.Quiet = c.quiet
		note := WaitingNote(f).Event
		for _, at := range []int{0, 1, 59, 60, 120} {
			if note != nil {
				note(t.Context(), observe.Event{Kind: observe.Waiting, At: time.Unix(int64(at), 0), Resource: "jobs/a", Holder: "web-1", Since: time.Unix(0, 0)})
				note(t.Context(), observe.Event{Kind: observe.Renewed, At: time.Unix(int64(at), 0)})
			}
		}
		f.Close()
		if got := strings.Count(said.String(), "azconc: waiting for jobs/a, held by web-1 since 1970-01-01T00:00:00Z\n"); got != c.want || strings.Count(said.String(), "\n") != got {
			t.Errorf("%+v: %q", c, said)
		}
	}
}

// Of a free lock, the record names the last holder: the wait was said to be for one that held nothing.
func TestAWaitForAFreeLockNamesNoHolder(t *testing.T) {
	s, _, _, said := cli.TestStreams()
	f := cli.NewFactory(s, nil)
	WaitingNote(f).Event(t.Context(), observe.Event{Kind: observe.Waiting, At: time.Unix(60, 0), Resource: "jobs/a"})
	f.Close()
	if got := said.String(); got != "azconc: waiting for jobs/a\n" {
		t.Errorf("%q", got)
	}
}
