package explore_test

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/azconc/azconc/pessimistic"
	"github.com/azconc/azconc/pessimistic/group"
	"github.com/azconc/azconc/pkg/aztest/bubble"
	"github.com/azconc/azconc/pkg/aztest/explore"
	"github.com/azconc/azconc/pkg/retry"
)

// errOver ends the members.
var errOver = errors.New("the day is over")

// members is a program of members of a group that share three parts for a while, in which no lease is renewed or expires. The second
// comes when the first has all of them.
func members(clients int) func(*explore.World) explore.Program {
	return func(w *explore.World) explore.Program {
		var mu sync.Mutex // a member works on several parts at a time
		wards := make([]ward, 3)
		last := make([]bool, 3) // whether a part was worked on until the end
		var p explore.Program
		for i := range clients {
			p.Clients = append(p.Clients, func(ctx context.Context, c *explore.Client) error {
				k, err := locker(c)
				if err == nil {
					k, err = k.With(func(o *pessimistic.LockerOptions) { o.Duration = time.Minute })
				}
				if err != nil {
					return err
				}
				g, err := group.New(k, "g", len(wards), &group.Options{Drain: 5 * time.Second})
				if err != nil {
					return err
				}
				ctx, cancel := context.WithTimeoutCause(ctx, 8*time.Second, errOver)
				defer cancel()
				if err := retry.Sleep(ctx, time.Duration(i)*2500*time.Millisecond); err != nil { // one after the other
					return err
				}
				err = g.Run(ctx, func(ctx context.Context, part int, h *pessimistic.Hold) error {
					mu.Lock()
					wards[part].follow(i, h.Fence())
					leave := wards[part].enter(ctx, i, false)
					mu.Unlock()
					<-ctx.Done()
					mu.Lock()
					defer mu.Unlock()
					leave()
					if errors.Is(context.Cause(ctx), errOver) {
						last[part] = true
					}
					return nil
				})
				if errors.Is(err, errOver) {
					return nil
				}
				return err
			})
		}
		p.Check = func() error {
			if w.Faults() > 0 {
				bubble.Sleep(61 * time.Second)
			}
			all := []error{free(w, "g/0", "g/1", "g/2")}
			for i, err := range w.Errors() {
				if !w.Killed(i) {
					all = append(all, err)
				}
			}
			for part := range wards {
				all = append(all, wards[part].overlap)
				if !last[part] && w.Faults() == 0 {
					all = append(all, fmt.Errorf("at the end nobody works on part %d", part))
				}
			}
			return errors.Join(all...)
		}
		return p
	}
}

func TestPartsHaveOneMemberInEverySchedule(t *testing.T) {
	explored(t, and([]bounds{{clients: 1, faults: 1}, {clients: 2, preemptions: 1}, {clients: 2, faults: 1, preemptions: -1}}, 2, 1, 1, 3, 1, -1), members, explore.Options{Kinds: withKills, Ordered: true})
}
