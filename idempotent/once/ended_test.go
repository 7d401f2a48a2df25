package once

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/azconc/azconc/pessimistic"
	"github.com/azconc/azconc/pkg/aztest"
)

// The error of a wait, a list or a GC whose context ended was the cause alone.
func TestAContextThatEndsSaysWhatWasGoingOn(t *testing.T) {
	inBubble(t, func(t *testing.T, r *rig) {
		o := r.once(r.service)
		ended := func() (context.Context, context.CancelFunc) { return context.WithTimeout(t.Context(), 5*time.Second) }
		check := func(want string, err error) {
			t.Helper()
			if !errors.Is(err, context.DeadlineExceeded) || !strings.Contains(err.Error(), want) {
				t.Errorf("%s: %v", want, err)
			}
		}
		_, err := o.Do(t.Context(), "k", nil, func(context.Context, *pessimistic.Hold) ([]byte, error) {
			ctx, cancel := ended()
			defer cancel()
			_, err := o.Await(ctx, "k", nil, Wait{})
			return nil, err
		})
		check("wait for results/once-locks/k", err)
		r.service.SetFaults(aztest.Fault{Kind: aztest.Hang})
		ctx, cancel := ended()
		defer cancel()
		_, err = o.Completed(ctx, "a", "b")
		check("query table results", err)
		_, err = o.GC(ctx, time.Hour)
		check("query table results", err)
	})
}
