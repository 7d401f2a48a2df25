package explore_test

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/azconc/azconc/idempotent"
	"github.com/azconc/azconc/idempotent/manual"
	"github.com/azconc/azconc/idempotent/redrive"
	"github.com/azconc/azconc/pkg/aztest/bubble"
	"github.com/azconc/azconc/pkg/aztest/explore"
)

// buriers is a program of clients that consume a queue with a message that no handler can handle. It must end in the
// poison queue, with its bytes, and be there once if nothing goes wrong.
func buriers(clients int) func(*explore.World) explore.Program {
	return func(w *explore.World) explore.Program {
		send(w, "orders", 1)
		w.Service.Queue("poison")
		w.Service.Table("markers")
		run := func(ctx context.Context, a account) error {
			o, err := withMarkers(a)
			if err != nil {
				return err
			}
			o.Poison, o.MaxAttempts = a.Queue("poison"), 1
			return consume(ctx, a, o, func(context.Context, *idempotent.Message) error { return errors.New("no apples") })
		}
		var p explore.Program
		for range clients {
			p.Clients = append(p.Clients, func(ctx context.Context, c *explore.Client) error { return run(ctx, c) })
		}
		p.Check = func() error {
			if err := settle(w, "orders", func() error { return run(context.Background(), w.Service) }); err != nil {
				return err
			}
			resp, err := w.Service.Queue("poison").PeekMessages(context.Background(), nil)
			if err != nil {
				return err
			}
			if n := len(resp.Messages); n == 0 || n > 1 && w.Faults() == 0 {
				return fmt.Errorf("%d poison messages; the clients report %v", n, w.Errors())
			}
			opened, err := manual.Open(*resp.Messages[0].MessageText, idempotent.Auto)
			if err == nil && string(opened.Body) != "3 apples" {
				err = fmt.Errorf("the body of the poison message is %q", opened.Body)
			}
			return err
		}
		return p
	}
}

func TestAPoisonMessageIsKeptInEverySchedule(t *testing.T) {
	explored(t, and(long, 1, 2, 0, 2, 2, 0, 3, 1, 0), buriers, explore.Options{Kinds: withKills})
}

// redrivers is a program of clients that move a poison message back to its queue. It must be handled once afterwards,
// however often it was copied on the way.
func redrivers(clients int) func(*explore.World) explore.Program {
	return func(w *explore.World) explore.Program {
		send(w, "poison", 1)
		w.Service.Queue("orders")
		w.Service.Table("markers")
		redrive := func(ctx context.Context, a account) error {
			_, err := redrive.Run(ctx, a.Queue("poison"), a.Queue("orders"), nil)
			return err
		}
		var p explore.Program
		for range clients {
			p.Clients = append(p.Clients, func(ctx context.Context, c *explore.Client) error { return redrive(ctx, c) })
		}
		p.Check = func() error {
			ctx, reports := context.Background(), w.Errors()
			bubble.Sleep(5 * time.Minute)
			if err := settle(w, "poison", func() error { return redrive(ctx, w.Service) }); err != nil {
				return err
			}
			handled := 0
			err := settle(w, "orders", func() error {
				o, err := withMarkers(w.Service)
				if err != nil {
					return err
				}
				return consume(ctx, w.Service, o, func(context.Context, *idempotent.Message) error { handled++; return nil })
			})
			if err == nil && handled != 1 {
				err = fmt.Errorf("the message was handled %d times; the clients report %v", handled, reports)
			}
			return err
		}
		return p
	}
}

func TestAMessageIsRedrivenInEverySchedule(t *testing.T) {
	explored(t, and(long, 1, 2, 0, 2, 2, 0, 2, 3, 0, 3, 1, 0), redrivers, explore.Options{Kinds: withKills})
}
