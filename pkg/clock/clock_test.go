package clock

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/azconc/azconc/pkg/aztest/bubble"
)

// suspended has the machine suspended at a time, for so long.
func suspended(t *testing.T, at time.Time, d time.Duration) {
	Jumped = func() time.Duration {
		if time.Now().Before(at) {
			return 0
		}
		return d
	}
	t.Cleanup(func() { Jumped = nil })
}

func TestTheClockThatShowsMoreTimeCounts(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		began := Now()
		for _, tt := range []struct{ ahead, passed, left time.Duration }{
			{0, time.Minute, 4 * time.Minute},
			{3 * time.Minute, 4 * time.Minute, time.Minute},
			{-time.Hour, time.Minute, 4 * time.Minute}, // set back
		} {
			now := began.Add(time.Minute).Ahead(tt.ahead)
			if passed, left := now.Since(began), -now.Since(began.Add(5*time.Minute)); passed != tt.passed || left != tt.left || now.RunSince(began) != time.Minute {
				t.Errorf("%v ahead: %v have passed, %v are left", tt.ahead, passed, left)
			}
			if jump := now.JumpSince(began); jump != tt.ahead || !now.Wall().Equal(began.Wall().Add(time.Minute+tt.ahead)) {
				t.Errorf("%v ahead: a jump of %v to %v", tt.ahead, jump, now.Wall())
			}
		}
		if left := Of(began.Add(time.Minute).Time()).Left(); left != time.Minute {
			t.Errorf("of a time: %v are left", left)
		}
		if left := Of(time.Time{}).Left(); left >= 0 {
			t.Errorf("the zero time is to come in %v", left)
		}
	})
}

func TestAWaitNoticesASuspensionWithinASecond(t *testing.T) {
	for name, wait := range map[string]func(context.Context, Instant) error{
		"Wait": func(ctx context.Context, i Instant) error { return i.Wait(ctx) },
		"Context": func(ctx context.Context, i Instant) error {
			ctx, cancel := i.Context(ctx, errOver)
			defer cancel()
			<-ctx.Done()
			if why := context.Cause(ctx); why != errOver {
				return why
			}
			return nil
		},
	} {
		synctest.Test(t, func(t *testing.T) {
			began := time.Now()
			suspended(t, began.Add(10500*time.Millisecond), time.Hour)
			if err := wait(t.Context(), Now().Add(30*time.Minute)); err != nil || time.Since(began) != 11*time.Second {
				t.Errorf("%s: %v after %v", name, err, time.Since(began))
			}
			began = time.Now()
			if err := wait(t.Context(), Now().Add(90*time.Second)); err != nil || time.Since(began) != 90*time.Second {
				t.Errorf("%s: %v after %v without a suspension", name, err, time.Since(began))
			}
			ctx, cancel := context.WithCancel(t.Context())
			time.AfterFunc(time.Minute, cancel)
			if err := wait(ctx, Now().Add(time.Hour)); !errors.Is(err, context.Canceled) {
				t.Errorf("%s: %v", name, err)
			}
			bubble.Sleep(time.Second)
		})
	}
}

var errOver = errors.New("it is over")
