package manual

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/azconc/azconc/pkg/aztest"
)

// The error of an operation whose context ended was the cause alone.
func TestAContextThatEndsSaysWhatWasGoingOn(t *testing.T) {
	inBubble(t, func(t *testing.T, r *rig) {
		m := Delivery{MessageID: "m", PopReceipt: "x", HeldUntil: time.Now().Add(time.Hour)}
		for want, f := range map[string]func(ctx context.Context) error{
			"manual.Receive orders": func(ctx context.Context) error { _, _, err := Receive(ctx, r.queue, 1, time.Minute, nil); return err },
			"manual.Delete orders":  func(ctx context.Context) error { _, err := Delete(ctx, r.queue, m, nil); return err },
			"manual.Extend orders":  func(ctx context.Context) error { _, err := Extend(ctx, r.queue, m, time.Minute, nil); return err },
		} {
			for _, at := range []time.Duration{0, 5 * time.Second} {
				r.service.SetFaults(aztest.Fault{Kind: aztest.Hang})
				ctx, cancel := context.WithTimeout(t.Context(), at)
				if err := f(ctx); !errors.Is(err, context.DeadlineExceeded) || !strings.HasPrefix(err.Error(), want) {
					t.Errorf("%s, after %v: %v", want, at, err)
				}
				cancel()
			}
		}
	})
}
