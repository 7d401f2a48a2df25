package retry

import (
	"context"
	"testing"
	"testing/synctest"
	"time"
)

func TestWaitsTakeTheirRandomNumbersFromTheContext(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx := WithRandom(t.Context(), func() float64 { return 0.25 })
		budget := Budget{Attempts: 3, Elapsed: time.Hour, Backoff: Backoff{Base: 8 * time.Second}}
		for _, one := range []struct {
			name string
			ctx  context.Context
			rand func() float64
			want [2]time.Duration
		}{
			{"the context's", ctx, nil, [2]time.Duration{2 * time.Second, 4 * time.Second}},
			{"the context's, without its end", context.WithoutCancel(ctx), nil, [2]time.Duration{2 * time.Second, 4 * time.Second}},
			{"the backoff's own come first", ctx, func() float64 { return 0.75 }, [2]time.Duration{6 * time.Second, 12 * time.Second}},
		} {
			budget.Backoff.Rand = one.rand
			loop := budget.Start()
			for i, want := range one.want {
				began := time.Now()
				if err := loop.Next(one.ctx, 0); err != nil || time.Since(began) != want {
					t.Errorf("%s: wait %d took %v and returned %v, want %v", one.name, i, time.Since(began), err, want)
				}
			}
		}
	})
}

func TestRandomNumbersDifferWithoutASource(t *testing.T) {
	met := map[float64]bool{}
	for range 100 {
		n := Random(t.Context())
		if n < 0 || n >= 1 {
			t.Fatalf("%v is not in [0, 1)", n)
		}
		met[n] = true
	}
	if len(met) < 50 {
		t.Errorf("100 random numbers have %d values", len(met))
	}
}
