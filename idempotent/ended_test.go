package idempotent

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/azconc/azconc/idempotent/redrive"
	"github.com/azconc/azconc/pkg/aztest"
)

// Of some operations the error was the cause of the context alone, and a log with it did not say where a program was stuck.
func TestAContextThatEndsSaysWhatWasGoingOn(t *testing.T) {
	inClaimBubble(t, func(t *testing.T, r *rig, k *ClaimCheck) {
		p, err := NewProducer(r.queue, &ProducerOptions{ClaimCheck: k})
		if err != nil {
			t.Fatal(err)
		}
		m := &Message{ID: "m", Key: "m", Queue: "orders", Expires: time.Now().Add(time.Hour)}
		hang := aztest.Fault{Kind: aztest.Hang}
		for want, f := range map[string]func(ctx context.Context) error{
			"send m to orders": func(ctx context.Context) error { _, err := p.Send(ctx, Outgoing{ID: "m"}); return err },
			"store the body in claims/azconcclaim/": func(ctx context.Context) error {
				_, err := p.Send(ctx, Outgoing{ID: "m", Body: noise(70_000)})
				return err
			},
			"effects/p":           func(ctx context.Context) error { return r.inbox.Apply(ctx, m, "p", upsertEffect(m)) },
			"query table effects": func(ctx context.Context) error { _, err := r.inbox.GC(ctx, "p"); return err },
			"query table markers": func(ctx context.Context) error { _, err := r.markers.GC(ctx, "orders"); return err },
			"list claims":         func(ctx context.Context) error { _, err := k.GC(ctx, time.Hour); return err },
			"receive from orders": func(ctx context.Context) error { _, err := redrive.Run(ctx, r.queue, r.poison, nil); return err },
			"wait for the next message of orders": func(ctx context.Context) error {
				r.send("m", "n")
				_, err := redrive.Run(ctx, r.queue, r.poison, &redrive.Options{PerSecond: 0.01})
				return err
			},
			"wait for hidden messages of orders": func(ctx context.Context) error {
				r.send("hidden")
				r.receiveAndDie(32, time.Minute)
				_, err := redrive.Run(ctx, r.queue, r.poison, &redrive.Options{Wait: time.Hour})
				return err
			},
		} {
			if r.service.SetFaults(); !strings.HasPrefix(want, "wait") {
				r.service.SetFaults(hang)
			}
			ctx, cancel := context.WithTimeout(t.Context(), 7*time.Second)
			if err := f(ctx); !errors.Is(err, context.DeadlineExceeded) || !strings.Contains(err.Error(), want) {
				t.Errorf("%s: %v", want, err)
			}
			cancel()
			pass(10 * time.Minute)
		}
	})
}
