package explore_test

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/azconc/azconc/idempotent"
	"github.com/azconc/azconc/pkg/aztest/bubble"
	"github.com/azconc/azconc/pkg/aztest/explore"
	"github.com/azconc/azconc/pkg/observe"
)

// sessions is a program of clients that consume a queue with one message, each a little later than a message of the one before
// stays hidden. Their handlers do not end when they are asked to, so that only the session of a consumer keeps another from
// handling the message at the same time.
func sessions(clients int) func(*explore.World) explore.Program {
	return func(w *explore.World) explore.Program {
		send(w, "orders", 1)
		w.Service.Table("markers")
		w.Service.BlockBlob("sessions", "x") // makes the container
		if _, err := w.Service.BlockBlob("box", "n").UploadBuffer(context.Background(), nil, nil); err != nil {
			panic(err)
		}
		handled, buried := 0, 0
		var d ward
		run := func(ctx context.Context, a account, handler idempotent.Handler) error {
			o, err := withMarkers(a)
			if err != nil {
				return err
			}
			if o.Sessions, err = idempotent.NewSessions(a.Container("sessions"), nil); err != nil {
				return err
			}
			o.Hooks.Event = func(_ context.Context, e observe.Event) {
				if e.Kind == observe.Poisoned {
					buried++
				}
			}
			return consume(ctx, a, o, handler)
		}
		var p explore.Program
		for i := range clients {
			p.Clients = append(p.Clients, func(ctx context.Context, c *explore.Client) error {
				alive, die := context.WithCancel(context.WithoutCancel(ctx))
				defer die()
				defer context.AfterFunc(ctx, die)() // a killed client is not in the way
				bubble.Sleep(time.Duration(i) * 10 * time.Second)
				return run(ctx, c, func(ctx context.Context, _ *idempotent.Message) error {
					defer d.enter(alive, i, false)()
					_, err := c.BlockBlob("box", "n").GetProperties(alive, nil)
					if err == nil {
						handled++
					}
					return err
				})
			})
		}
		p.Check = func() error {
			reports := w.Errors()
			err := settle(w, "orders", func() error {
				return run(context.Background(), w.Service, func(context.Context, *idempotent.Message) error { handled++; return nil })
			})
			if handled == 0 || buried > 0 || handled > 1 && w.Faults() == 0 {
				err = errors.Join(err, fmt.Errorf("handled %d times, %d buried; the clients report %v", handled, buried, reports))
			}
			return errors.Join(err, d.overlap)
		}
		return p
	}
}

func TestASessionKeepsOthersFromAMessageInEverySchedule(t *testing.T) {
	explored(t, and(long, 1, 2, 0, 2, 2, -1, 3, 1, -1), sessions, explore.Options{Kinds: withKills})
}
