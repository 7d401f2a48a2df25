package retry

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math"
	"math/rand/v2"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/goleak"

	"github.com/azconc/azconc/pkg/aztest/bubble"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func TestWaitsAreUniformUpToADoublingBound(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	b := Backoff{Base: 20 * time.Millisecond, Cap: 2 * time.Second, Rand: rng.Float64}
	for n, bound := range []time.Duration{20, 40, 80, 160, 320, 640, 1280, 2000, 2000} {
		bound *= time.Millisecond
		const draws = 4000
		var sum, longest time.Duration
		var tenths [10]int
		for range draws {
			w := b.Wait(n)
			if w < 0 || w >= bound {
				t.Fatalf("Wait(%d) = %v, want within [0, %v)", n, w, bound)
			}
			sum += w
			longest = max(longest, w)
			tenths[int(10*w/bound)]++
		}
		if mean := sum / draws; mean < bound*47/100 || mean > bound*53/100 {
			t.Errorf("Wait(%d): mean %v, want about %v", n, mean, bound/2)
		}
		for i, count := range tenths {
			if count < draws/10*8/10 || count > draws/10*12/10 {
				t.Errorf("Wait(%d): %d of %d waits in tenth %d, want about %d", n, count, draws, i, draws/10)
			}
		}
	}
}

func TestWaitsDoNotOverflow(t *testing.T) {
	almostOne := func() float64 { return 0.999 }
	for _, b := range []Backoff{
		{Base: time.Hour, Rand: almostOne},
		{Base: time.Nanosecond, Cap: time.Hour, Rand: almostOne},
		{Base: maxDuration, Cap: time.Hour, Rand: almostOne},
	} {
		longest := time.Duration(0)
		for n := -1; n < 100; n++ {
			w := b.Wait(n)
			if w < longest || b.Cap > 0 && w > b.Cap {
				t.Errorf("Base %v, Cap %v: Wait(%d) = %v after %v", b.Base, b.Cap, n, w, longest)
			}
			longest = w
		}
	}
	if w := (Backoff{}).Wait(5); w != 0 {
		t.Errorf("the zero Backoff waits %v, want 0", w)
	}
}

// full waits exactly the bound, so that times can be computed by hand.
func full(base, limit time.Duration) Backoff {
	return Backoff{Base: base, Cap: limit, Rand: func() float64 { return 1 }}
}

func TestABudgetOfAttemptsAllowsThatMany(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		loop := Budget{Attempts: 4, Elapsed: -1, Backoff: full(time.Second, time.Minute)}.Start()
		tries := 1
		for loop.Next(t.Context(), 0) == nil {
			tries++
		}
		if tries != 4 || loop.Tries() != 4 {
			t.Errorf("tries = %d, Tries() = %d, want 4", tries, loop.Tries())
		}
		if want := (1 + 2 + 4) * time.Second; loop.Elapsed() != want {
			t.Errorf("waited %v, want %v", loop.Elapsed(), want)
		}
	})
}

func TestABudgetOfTimeDoesNotSleepTowardsATryItCannotMake(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		loop := Budget{Attempts: -1, Elapsed: 10 * time.Second, Backoff: full(time.Second, time.Minute)}.Start()
		var err error
		for err == nil {
			err = loop.Next(t.Context(), 0)
		}
		if !errors.Is(err, ErrExhausted) {
			t.Errorf("err = %v, want ErrExhausted", err)
		}
		if want := (1 + 2 + 4) * time.Second; loop.Elapsed() != want {
			t.Errorf("gave up after %v, want %v: the next wait of 8 s would have passed 10 s", loop.Elapsed(), want)
		}
	})
}

func TestADeadlineOfTheContextIsSeenBeforeSleeping(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithTimeout(t.Context(), 2*time.Second)
		defer cancel()
		loop := Budget{Attempts: -1, Elapsed: -1, Backoff: full(3*time.Second, 0)}.Start()
		if err := loop.Next(ctx, 0); !errors.Is(err, ErrExhausted) || loop.Elapsed() != 0 {
			t.Errorf("Next = %v after %v, want ErrExhausted at once", err, loop.Elapsed())
		}
	})
}

func TestTheServersWishIsALowerBound(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		loop := Budget{Attempts: -1, Elapsed: -1, Backoff: full(time.Second, time.Second)}.Start()
		for _, tt := range []struct{ atLeast, want time.Duration }{{0, 1}, {5, 5}, {1, 1}} {
			before := time.Now()
			if err := loop.Next(t.Context(), tt.atLeast*time.Second); err != nil {
				t.Fatal(err)
			}
			if got := time.Since(before); got != tt.want*time.Second {
				t.Errorf("Next(%d s) waited %v, want %d s", tt.atLeast, got, tt.want)
			}
		}
	})
}

func TestAnEndedContextIsReturnedWithItsCause(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		reason := errors.New("the lease was lost")
		ctx, cancel := context.WithCancelCause(t.Context())
		time.AfterFunc(500*time.Millisecond, func() { cancel(reason) })
		loop := Budget{Attempts: -1, Elapsed: -1, Backoff: full(time.Second, time.Second)}.Start()
		if err := loop.Next(ctx, 0); !errors.Is(err, reason) || loop.Elapsed() != 500*time.Millisecond {
			t.Errorf("Next = %v after %v, want the cause after 500ms", err, loop.Elapsed())
		}
		if err := Sleep(ctx, 0); !errors.Is(err, reason) {
			t.Errorf("Sleep(0) = %v, want the cause even without waiting", err)
		}
		if err := loop.Next(ctx, 0); !errors.Is(err, reason) {
			t.Errorf("Next = %v, want the cause", err)
		}
	})
}

func TestTheZeroBudgetAllowsOneTry(t *testing.T) {
	if err := (Budget{}).Start().Next(t.Context(), 0); !errors.Is(err, ErrExhausted) {
		t.Errorf("Next = %v, want ErrExhausted", err)
	}
}

// TestAWishBeyondAllTimeIsNotAWaitOfNone: the sum of the time elapsed and the longest Duration is negative, and once was
// taken for a wait that fits into any budget.
func TestAWishBeyondAllTimeIsNotAWaitOfNone(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		loop := Budget{Attempts: -1, Elapsed: time.Minute, Backoff: full(time.Second, 0)}.Start()
		if err := loop.Next(t.Context(), 0); err != nil {
			t.Fatal(err)
		}
		if err := loop.Next(t.Context(), math.MaxInt64); !errors.Is(err, ErrExhausted) || loop.Elapsed() != time.Second {
			t.Errorf("Next = %v after %v, want ErrExhausted without waiting", err, loop.Elapsed())
		}
	})
}

func TestALoopWithoutBoundsEndsWithItsContextOnly(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		time.AfterFunc(24*time.Hour, cancel)
		loop := Budget{Attempts: -1, Elapsed: -1, Backoff: full(time.Second, time.Minute)}.Start()
		var err error
		for err == nil {
			err = loop.Next(ctx, 0)
		}
		if !errors.Is(err, context.Canceled) || loop.Elapsed() != 24*time.Hour {
			t.Errorf("ended with %v after %v and %d tries", err, loop.Elapsed(), loop.Tries())
		}
	})
}

func TestTheCallersOwnWaitIsBoundedByTheSameBudget(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		loop := Budget{Attempts: 4, Elapsed: 10 * time.Second, Backoff: full(time.Hour, 0)}.Start()
		for _, tt := range []struct {
			wait, elapsed time.Duration
			err           error
			tries         int
		}{
			{3 * time.Second, 3 * time.Second, nil, 2},
			{-time.Second, 3 * time.Second, nil, 3},
			{7 * time.Second, 3 * time.Second, ErrExhausted, 3}, // it would end just when the time is up
			{6 * time.Second, 9 * time.Second, nil, 4},
			{0, 9 * time.Second, ErrExhausted, 4},
		} {
			if err := loop.NextAfter(t.Context(), tt.wait); err != tt.err || loop.Elapsed() != tt.elapsed || loop.Tries() != tt.tries {
				t.Errorf("NextAfter(%v) = %v, after %v, %d tries; want %v, %v, %d", tt.wait, err, loop.Elapsed(), loop.Tries(), tt.err, tt.elapsed, tt.tries)
			}
		}
	})
}

// TestTimeThatIsUpStaysUp: less than no time left is not room for a wait of less than nothing.
func TestTimeThatIsUpStaysUp(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		loop := Budget{Attempts: -1, Elapsed: time.Second}.Start()
		bubble.Sleep(2 * time.Second)
		if err := loop.NextAfter(t.Context(), -time.Hour); !errors.Is(err, ErrExhausted) {
			t.Errorf("NextAfter = %v, want ErrExhausted", err)
		}
	})
}

// TestNoBudgetIsOverrun runs random loops to their ends. A loop may end early, never late, and never sleeps in vain.
func TestNoBudgetIsOverrun(t *testing.T) {
	rng := rand.New(rand.NewPCG(3, 4))
	for range 300 {
		b := Budget{
			Attempts: 1 + rng.IntN(20),
			Elapsed:  time.Duration(rng.Int64N(int64(time.Minute))),
			Backoff:  Backoff{Base: time.Duration(rng.Int64N(int64(5 * time.Second))), Cap: 20 * time.Second, Rand: rng.Float64},
		}
		work, deadline := time.Duration(rng.Int64N(int64(time.Second))), time.Duration(1+rng.Int64N(int64(time.Minute)))
		synctest.Test(t, func(t *testing.T) {
			ctx, cancel := context.WithTimeout(t.Context(), deadline)
			defer cancel()
			loop := b.Start()
			var slept, last time.Duration
			var err error
			for tries := 1; err == nil; tries++ {
				if loop.Tries() != tries || tries > b.Attempts {
					t.Fatalf("%+v: try %d, Tries() = %d", b, tries, loop.Tries())
				}
				last = loop.Elapsed()
				bubble.Sleep(work)
				before := time.Now()
				err = loop.Next(ctx, 0)
				slept = time.Since(before)
			}
			switch {
			case last > 0 && (last >= b.Elapsed || last >= deadline):
				t.Errorf("%+v, deadline %v: a try began after %v", b, deadline, last)
			case slept != 0:
				t.Errorf("%+v: slept %v before %v", b, slept, err)
			case !errors.Is(err, ErrExhausted) && !(errors.Is(err, context.DeadlineExceeded) && loop.Elapsed() >= deadline):
				t.Errorf("%+v, deadline %v: ended with %v after %v", b, deadline, err, loop.Elapsed())
			}
		})
	}
}

func TestABudgetStartsAnyNumberOfLoops(t *testing.T) {
	b := Budget{Attempts: 2, Elapsed: time.Hour}
	for range 3 {
		loop := b.Start()
		if err := loop.Next(t.Context(), 0); err != nil {
			t.Errorf("first Next = %v", err)
		}
		if err := loop.Next(t.Context(), 0); !errors.Is(err, ErrExhausted) {
			t.Errorf("second Next = %v, want ErrExhausted", err)
		}
	}
}

func TestWithoutARandWaitsDiffer(t *testing.T) {
	b := Backoff{Base: time.Hour}
	seen := map[time.Duration]bool{}
	for range 20 {
		w := b.Wait(0)
		if w < 0 || w >= time.Hour {
			t.Errorf("Wait(0) = %v, want within [0, 1h)", w)
		}
		seen[w] = true
	}
	if len(seen) < 10 {
		t.Errorf("20 waits took only %d values", len(seen))
	}
}

func TestSleepWaitsForTheTimeOrTheContext(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		began := time.Now()
		for _, tt := range []struct{ d, elapsed time.Duration }{{time.Minute, time.Minute}, {0, time.Minute}, {-time.Hour, time.Minute}} {
			if err := Sleep(t.Context(), tt.d); err != nil || time.Since(began) != tt.elapsed {
				t.Errorf("Sleep(%v) = %v, at %v, want nil at %v", tt.d, err, time.Since(began), tt.elapsed)
			}
		}
		reason := errors.New("shutting down")
		ctx, cancel := context.WithTimeoutCause(t.Context(), time.Second, reason)
		defer cancel()
		if err := Sleep(ctx, time.Hour); err != reason || time.Since(began) != time.Minute+time.Second {
			t.Errorf("Sleep = %v at %v, want the cause at 1m1s", err, time.Since(began))
		}
		if err := Sleep(ctx, -1); err != reason {
			t.Errorf("Sleep(-1) = %v, want the cause even without waiting", err)
		}
	})
}

func TestDetachedOutlivesItsParentForALimitedTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		type key struct{}
		parent, cancel := context.WithCancel(context.WithValue(t.Context(), key{}, "trace"))
		cancel()
		ctx, done := Detached(parent, 2*time.Second)
		defer done()
		if ctx.Err() != nil || ctx.Value(key{}) != "trace" {
			t.Errorf("err = %v, value = %v; want a live context with the parent's values", ctx.Err(), ctx.Value(key{}))
		}
		bubble.Sleep(2 * time.Second)
		synctest.Wait()
		if !errors.Is(ctx.Err(), context.DeadlineExceeded) {
			t.Errorf("after 2 s: err = %v, want it ended", ctx.Err())
		}
	})
}

func TestDetachedIsNeverUnbounded(t *testing.T) {
	for _, d := range []time.Duration{0, -time.Second} {
		ctx, done := Detached(t.Context(), d)
		if ctx.Err() == nil {
			t.Errorf("Detached(%v) lives", d)
		}
		done()
	}
	parent, cancel := context.WithTimeout(t.Context(), time.Hour)
	defer cancel()
	ctx, done := Detached(parent, 2*time.Hour)
	defer done()
	parentEnd, _ := parent.Deadline()
	if end, ok := ctx.Deadline(); !ok || !end.After(parentEnd) {
		t.Errorf("deadline %v, want one beyond the parent's %v", end, parentEnd)
	}
}

func TestStopIsSeenThroughAndFound(t *testing.T) {
	if Stop(nil) != nil {
		t.Error("Stop(nil) is not nil")
	}
	if err, ok := Stopped(Stop(io.EOF)); !ok || err != io.EOF {
		t.Errorf("Stopped(Stop(EOF)) = %v, %t", err, ok)
	}
	wrapped := fmt.Errorf("parse: %w", Stop(io.EOF))
	if err, ok := Stopped(wrapped); !ok || err != wrapped || !errors.Is(err, io.EOF) {
		t.Errorf("Stopped(wrapped) = %v, %t, want the wrapping kept", err, ok)
	}
	if err, ok := Stopped(io.EOF); ok || err != io.EOF {
		t.Errorf("Stopped(EOF) = %v, %t, want it unmarked", err, ok)
	}
}

func TestStopIsFoundWhereverItStands(t *testing.T) {
	joined := errors.Join(io.ErrShortWrite, Stop(io.EOF))
	if err, ok := Stopped(joined); !ok || err != joined {
		t.Errorf("Stopped(joined) = %v, %t", err, ok)
	}
	twice := Stop(fmt.Errorf("parse: %w", Stop(io.EOF)))
	if err, ok := Stopped(twice); !ok || err.Error() != "parse: EOF" || !errors.Is(err, io.EOF) {
		t.Errorf("Stopped(twice) = %v, %t", err, ok)
	}
	if Stop(io.EOF).Error() != "EOF" {
		t.Errorf("the mark shows: %q", Stop(io.EOF))
	}
	if err, ok := Stopped(nil); ok || err != nil {
		t.Errorf("Stopped(nil) = %v, %t", err, ok)
	}
}
