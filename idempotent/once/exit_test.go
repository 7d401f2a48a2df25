package once

import (
	"context"
	"runtime"
	"sync"
	"testing"

	"github.com/azconc/azconc/pessimistic"
	"github.com/azconc/azconc/pkg/observe"
)

// A function that panics, or ends its goroutine, has no result and leaves the key free.
func TestAFunctionThatDoesNotReturnLeavesTheKeyFree(t *testing.T) {
	for name, exit := range map[string]func(){"panic": func() { panic("exit") }, "runtime.Goexit": runtime.Goexit} {
		t.Run(name, func(t *testing.T) {
			inBubble(t, func(t *testing.T, r *rig) {
				var ended sync.WaitGroup
				ended.Go(func() {
					defer func() { _ = recover() }()
					_, err := r.once(r.service).Do(t.Context(), "k", nil, func(context.Context, *pessimistic.Hold) ([]byte, error) {
						exit()
						return nil, nil
					})
					t.Errorf("Do returned %v", err)
				})
				ended.Wait()
				out, err := r.once(r.service).Do(t.Context(), "k", nil, func(context.Context, *pessimistic.Hold) ([]byte, error) { return []byte("x"), nil })
				if err != nil || out.Replayed {
					t.Errorf("%+v, %v", out, err)
				}
			})
		})
	}
}

// A hook that called runtime.Goexit after the lock was acquired left it held, and renewed, for as long as the process lived.
func TestAHookThatEndsItsGoroutineLeavesTheKeyFree(t *testing.T) {
	inBubble(t, func(t *testing.T, r *rig) {
		looks := 0
		exiting := r.once(r.service)
		exiting.table = exiting.table.Observed(observe.Hooks{Span: func(ctx context.Context, s observe.Span) (context.Context, func(error)) {
			if s.Name == "Get Entity" || s.Name == "Query Entities" {
				if looks++; looks == 2 {
					runtime.Goexit()
				}
			}
			return ctx, func(error) {}
		}})
		work := func(context.Context, *pessimistic.Hold) ([]byte, error) { return []byte("x"), nil }
		var ended sync.WaitGroup
		ended.Go(func() {
			out, err := exiting.Do(t.Context(), "k", nil, work)
			t.Errorf("Do returned %+v, %v", out, err)
		})
		ended.Wait()
		if out, err := r.once(r.service).Do(t.Context(), "k", nil, work); err != nil || out.Replayed {
			t.Errorf("%+v, %v", out, err)
		}
	})
}
