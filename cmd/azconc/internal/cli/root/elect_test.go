package root

import (
	"context"
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/azconc/azconc/pessimistic"
	"github.com/azconc/azconc/pessimistic/election"
	"github.com/azconc/azconc/pkg/aztest"
	"github.com/azconc/azconc/pkg/aztest/bubble"
)

// The term of a leader that was made to step down ends before the service lets another candidate lead.
func TestALeaderIsMadeToStepDown(t *testing.T) {
	for _, c := range []struct {
		name  string
		lease time.Duration
	}{
		{"lease of 30 s", 30 * time.Second},
		{"infinite lease", pessimistic.Infinite},
	} {
		synctest.Test(t, func(t *testing.T) {
			s := aztest.New(nil)
			if r := runOn(t.Context(), s, nil, nil, "container", "create", "jobs"); r.code != 0 {
				t.Fatal(r)
			}
			locker, err := pessimistic.NewLocker(s.Container("jobs"), &pessimistic.LockerOptions{Owner: "web-1", Duration: c.lease})
			if err != nil {
				t.Fatal(err)
			}
			e, err := election.New(locker, "leader", nil)
			if err != nil {
				t.Fatal(err)
			}
			ctx, stop := context.WithCancel(t.Context())
			var ended []error
			var free []bool
			done := make(chan error)
			go func() {
				done <- e.Run(ctx, func(ctx context.Context, _ *pessimistic.Hold) error {
					<-ctx.Done()
					info, err := e.Leader(context.WithoutCancel(ctx))
					ended, free = append(ended, context.Cause(ctx)), append(free, err != nil || !info.Held)
					return nil
				})
			}()
			bubble.Sleep(time.Minute)
			shown := runOn(t.Context(), s, nil, nil, "lock", "show", "jobs/leader", "-o", "json").json(t)
			if shown["held"] != true || shown["owner"] != "web-1" || shown["fence"] == nil || shown["since"] == nil {
				t.Errorf("%s: %v", c.name, shown)
			}
			r := runOn(t.Context(), s, nil, nil, "lock", "break", "jobs/leader", "--if-match", "0x1")
			if r.code != 4 {
				t.Errorf("%s: another term is ended: %v", c.name, r)
			}
			v := runOn(t.Context(), s, nil, nil, "lock", "break", "jobs/leader", "-o", "json").json(t)
			if v["outcome"] != "breaking" || v["owner"] != "web-1" || v["requests"] != 2.0 {
				t.Errorf("%s: %v", c.name, v)
			}
			bubble.Sleep(2 * time.Minute)
			if len(ended) != 1 || !errors.Is(ended[0], pessimistic.ErrLost) || free[0] {
				t.Errorf("%s: terms that have ended: %v, with the lead free: %v", c.name, ended, free)
			}
			again := runOn(t.Context(), s, nil, nil, "lock", "show", "jobs/leader", "-o", "json").json(t)
			if again["held"] != true || again["fence"].(float64) <= shown["fence"].(float64) {
				t.Errorf("%s: the only candidate does not lead again: %v", c.name, again)
			}
			stop()
			<-done
			if v := runOn(t.Context(), s, nil, nil, "lock", "break", "jobs/leader", "-o", "json").json(t); v["outcome"] != "free" {
				t.Errorf("%s: without a leader: %v", c.name, v)
			}
			text := runOn(t.Context(), s, nil, nil, "lock", "show", "jobs/leader").out
			for _, want := range []string{"last owner  web-1", "last fence  "} {
				if !strings.Contains(text, want) {
					t.Errorf("%s: %q is not in %q", c.name, want, text)
				}
			}
		})
	}
}
