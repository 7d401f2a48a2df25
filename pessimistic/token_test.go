package pessimistic

import (
	"context"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/azconc/azconc/pessimistic/internal/pesstest"
	"github.com/azconc/azconc/pkg/aztest"
	"github.com/azconc/azconc/pkg/aztest/bubble"
	"github.com/azconc/azconc/pkg/fence"
	"github.com/azconc/azconc/pkg/lease"
)

// ruin is the damage that other clients do to a lock blob and its holders.
var ruin = map[string]func(ctx context.Context, w *world) error{
	"delete": func(ctx context.Context, w *world) error {
		_, err := w.Service.BlockBlob("box", "job").Delete(ctx, nil)
		return err
	},
	"break and delete": func(ctx context.Context, w *world) error {
		if _, err := Break(ctx, NewBlob(w.Service.BlockBlob("box", "job")), &BreakOptions{Now: true}); err != nil {
			return err
		}
		_, err := w.Service.BlockBlob("box", "job").Delete(ctx, nil)
		return err
	},
	"wipe the metadata": func(ctx context.Context, w *world) error {
		_, err := w.Service.BlockBlob("box", "job").SetMetadata(ctx, nil, nil)
		return err
	},
	"lower the fence": func(ctx context.Context, w *world) error {
		return rewrite(ctx, w, "job", "", func(m map[string]string) { m[fence.Key] = "1" })
	},
	"drop the fence": func(ctx context.Context, w *world) error {
		return rewrite(ctx, w, "job", "", func(m map[string]string) { delete(m, fence.Key) })
	},
	"replace the blob": func(ctx context.Context, w *world) error {
		_, err := w.Service.BlockBlob("box", "job").Upload(ctx, pesstest.Body(""), nil)
		return err
	},
}

// tokens are the fences of one history in the order in which the service has stored them.
type tokens struct {
	mu   sync.Mutex
	all  []fence.Token
	last string        // the nonce of the last record: the same holder may write it again
	max  time.Duration // by which a token was ahead of the service's clock
}

func (s *tokens) note(c pesstest.Carried) {
	if c.Op != "stamp" || c.Status != 200 {
		return
	}
	token, err := fence.Parse(c.Fence)
	s.mu.Lock()
	defer s.mu.Unlock()
	if err == nil && c.Nonce != s.last {
		s.last = c.Nonce
		s.all = append(s.all, token)
		s.max = max(s.max, token.Second().Sub(time.Now().Truncate(time.Second)))
	}
}

// fall returns the first place where the sequence does not grow.
func (s *tokens) fall() error {
	for i := 1; i < len(s.all); i++ {
		if s.all[i] <= s.all[i-1] {
			return fmt.Errorf("holder %d has %d after %d", i, s.all[i], s.all[i-1])
		}
	}
	return nil
}

// fences plays a history: processes with skewed clocks, each with several goroutines, take a lock again and again for a
// few milliseconds, while others ruin its blob at any time.
func fences(t *testing.T, seed uint64, holders int) *tokens {
	t.Helper()
	s := &tokens{}
	synctest.Test(t, func(t *testing.T) {
		rng := rand.New(rand.NewPCG(seed, 1))
		var mu sync.Mutex // guards rng
		draw := func(n int) int {
			mu.Lock()
			defer mu.Unlock()
			return rng.IntN(n)
		}
		w := newWorldWith(t, &aztest.Options{
			Seed: seed, Latency: func() time.Duration { return time.Duration(draw(4000)) * time.Microsecond },
			DateLag: time.Duration(seed%2) * pesstest.DateLag,
		})
		w.Witness.On(s.note)
		ctx, stop := context.WithCancel(t.Context())
		var all sync.WaitGroup
		for i := range 3 {
			k := w.lockerOf(&LockerOptions{Owner: fmt.Sprint(i), Poll: pollEvery(20 * time.Millisecond), HandOvers: 5})
			began := time.Now()
			skew := time.Duration(i-1) * time.Hour
			k.opts.clockJump = func() time.Duration { // the wall clock, an hour off, and jumping
				return skew + time.Since(began).Truncate(time.Minute)/7
			}
			for range 3 {
				all.Go(func() {
					for ctx.Err() == nil {
						h, err := k.Lock(ctx, "job", nil)
						if err != nil {
							if ctx.Err() == nil {
								t.Errorf("seed %d: %v", seed, err)
							}
							return
						}
						bubble.Sleep(time.Duration(draw(20)) * time.Millisecond)
						_ = h.Release(context.WithoutCancel(ctx))
					}
				})
			}
		}
		all.Go(func() {
			names := []string{"delete", "break and delete", "wipe the metadata", "lower the fence", "drop the fence", "replace the blob"}
			for ctx.Err() == nil {
				bubble.Sleep(time.Duration(draw(3000)) * time.Millisecond)
				_ = ruin[names[draw(len(names))]](ctx, w) // refused while the lock is held, mostly
				if draw(3) == 0 {
					_ = ruin["break and delete"](ctx, w)
				}
			}
		})
		for n := 0; n < holders; {
			bubble.Sleep(time.Second)
			s.mu.Lock()
			n = len(s.all)
			s.mu.Unlock()
		}
		stop()
		all.Wait()
	})
	return s
}

// One after the other within a second, by processes that know nothing of each other and whose clocks are off: each guesses
// wrong when the service's next second begins.
func TestAFenceGrowsAfterOthersChangeTheBlobWithinTheSecond(t *testing.T) {
	for name, strike := range ruin {
		t.Run(name, func(t *testing.T) {
			inBubbles(t, func(t *testing.T, w *world) {
				var last fence.Token
				for i := range 10 {
					off := time.Duration(i%4) * 250 * time.Millisecond
					k := w.lockerOf(nil)
					k.opts.clockJump = func() time.Duration { return off }
					h := locked(t, k, "job", nil)
					if h.Fence() <= last {
						t.Errorf("%d after %d", h.Fence(), last)
					}
					if now := fence.Token(time.Now().UnixMilli()); h.Fence().Second().After(time.UnixMilli(int64(now))) {
						t.Errorf("%d is given out at %d", h.Fence(), now)
					}
					last = h.Fence()
					if name == "break and delete" {
						crash(h.lease)
					} else {
						mustRelease(t, h.lease)
					}
					if err := strike(t.Context(), w); err != nil {
						t.Error(err)
					}
				}
			})
		})
	}
}

// A whole record of an earlier holder that is put back within the second is noticed by the process that has held the lock meanwhile.
func TestAProcessRemembersItsOwnFence(t *testing.T) {
	inBubbles(t, func(t *testing.T, w *world) {
		k := w.lockerOf(nil)
		mustRelease(t, locked(t, k, "job", nil).lease)
		old := w.Look("job").Metadata
		var last fence.Token
		for range 5 {
			h := locked(t, k, "job", nil)
			last = h.Fence()
			mustRelease(t, h.lease)
		}
		if _, err := w.Service.BlockBlob("box", "job").SetMetadata(t.Context(), pointers(old), nil); err != nil {
			t.Fatal(err)
		}
		h := locked(t, k, "job", nil)
		if h.Fence() <= last {
			t.Errorf("%d after %d", h.Fence(), last)
		}
		mustRelease(t, h.lease)
	})
}

// A whole record of an earlier holder that is put back within the second, after this process and then another have held the
// lock: what this process remembers is not the last fence, but it shows that the record is not the last one.
func TestAProcessNoticesARestoredRecordAfterAnotherHolder(t *testing.T) {
	inBubble(t, func(t *testing.T, w *world) {
		k, other := w.lockerOf(nil), w.lockerOf(nil)
		mustRelease(t, locked(t, other, "job", nil).lease)
		old := w.Look("job").Metadata
		mustRelease(t, locked(t, k, "job", nil).lease)
		var last fence.Token
		for range 5 {
			h := locked(t, other, "job", nil)
			last = h.Fence()
			mustRelease(t, h.lease)
		}
		if _, err := w.Service.BlockBlob("box", "job").SetMetadata(t.Context(), pointers(old), nil); err != nil {
			t.Fatal(err)
		}
		h := locked(t, k, "job", nil)
		if h.Fence() <= last {
			t.Errorf("%d after %d", h.Fence(), last)
		}
		mustRelease(t, h.lease)
	})
}

// Only the first holder of a blob, and of one that others have changed within the second, waits.
func TestWhatTheFenceCosts(t *testing.T) {
	took := func(t *testing.T, k *Locker) time.Duration {
		began := time.Now()
		mustRelease(t, locked(t, k, "job", nil).lease)
		return time.Since(began)
	}
	for _, at := range []time.Duration{0, 300 * time.Millisecond, 990 * time.Millisecond} {
		inBubbles(t, func(t *testing.T, w *world) {
			bubble.Sleep(at)
			k := w.lockerOf(nil)
			if first := took(t, k); first > time.Second+50*time.Millisecond+w.Lag {
				t.Errorf("the first holder took %v", first)
			} else {
				t.Logf("%v into a second, the first holder takes %v", at, first)
			}
			w.WantOps("look", "put", "acquire", "stamp", "release")
			w.Reset()
			if second := took(t, w.lockerOf(nil)); second != 0 {
				t.Errorf("the second took %v", second)
			}
			w.WantOps("look", "acquire", "stamp", "release")
			if _, err := w.Service.BlockBlob("box", "job").SetMetadata(t.Context(), nil, nil); err != nil {
				t.Fatal(err)
			}
			bubble.Sleep(1100 * time.Millisecond)
			if later := took(t, k); later > w.Lag+driftMargin {
				t.Errorf("a second after a change by others it took %v", later)
			}
		})
	}
	// A clock of ours that is off costs one second more at most.
	inBubbles(t, func(t *testing.T, w *world) {
		bubble.Sleep(400 * time.Millisecond)
		k := w.lockerOf(nil)
		k.opts.clockJump = func() time.Duration { return 550 * time.Millisecond }
		if first := took(t, k); first > 1500*time.Millisecond+w.Lag || first < 600*time.Millisecond {
			t.Errorf("with a clock that is off the first holder took %v", first)
		}
		w.WantOps("look", "put", "acquire", "stamp", "release")
	})
}

// A quick first fence may repeat, but not within one process.
func TestAQuickFirstFenceFollowsThatOfTheSameProcess(t *testing.T) {
	inBubble(t, func(t *testing.T, w *world) {
		k := w.lockerOf(&LockerOptions{QuickFirst: true})
		var last fence.Token
		for range 3 {
			h := locked(t, k, "job", nil)
			if h.Fence() <= last {
				t.Errorf("%d after %d", h.Fence(), last)
			}
			last = h.Fence()
			mustRelease(t, h.lease)
			if err := ruin["delete"](t.Context(), w); err != nil {
				t.Fatal(err)
			}
		}
	})
}

func TestQuickFirstDoesNotWaitForANewBlob(t *testing.T) {
	inBubbles(t, func(t *testing.T, w *world) {
		k := w.lockerOf(&LockerOptions{QuickFirst: true})
		began := time.Now()
		h := locked(t, k, "job", nil)
		mustRelease(t, h.lease)
		if took := time.Since(began); took != 0 {
			t.Errorf("it took %v", took)
		}
		if err := ruin["lower the fence"](t.Context(), w); err != nil {
			t.Fatal(err)
		}
		next := locked(t, w.lockerOf(&LockerOptions{QuickFirst: true}), "job", nil)
		if next.Fence() <= h.Fence() {
			t.Errorf("%d after %d", next.Fence(), h.Fence())
		}
		mustRelease(t, next.lease)
	})
}

// More than a thousand hand-overs in a second would get ahead of the service's clock.
func TestHandOversDoNotRunAheadOfTheServicesClock(t *testing.T) {
	inBubbles(t, func(t *testing.T, w *world) {
		var s tokens
		w.Witness.On(s.note)
		k := w.lockerOf(&LockerOptions{HandOvers: 5000})
		var q queued
		for i := range 2500 {
			q.all.Go(func() { q.one(t.Context(), k, i, 0) })
		}
		q.done(t, k)
		if len(q.errs) != 0 || len(s.all) != 2500 || s.fall() != nil || s.max > 0 {
			t.Errorf("%d holders, %v; errors %v; ahead by %v", len(s.all), s.fall(), q.errs, s.max)
		}
	})
}

func TestAFenceThatCannotGrowIsAnError(t *testing.T) {
	inBubbles(t, func(t *testing.T, w *world) {
		k := w.lockerOf(nil)
		mustRelease(t, locked(t, k, "job", nil).lease)
		set := func(token fence.Token) {
			t.Helper()
			if err := rewrite(t.Context(), w, "job", "", func(m map[string]string) { m[fence.Key] = token.String() }); err != nil {
				t.Fatal(err)
			}
		}
		set(math.MaxInt64 - 1) // far ahead of the clock: counted on, without waiting for the clock
		began := time.Now()
		h := locked(t, k, "job", nil)
		if h.Fence() != math.MaxInt64 || time.Since(began) > 2*time.Second {
			t.Errorf("fence %d after %v", h.Fence(), time.Since(began))
		}
		mustRelease(t, h.lease)
		for _, wait := range []bool{true, false} {
			_, err := k.Lock(t.Context(), "job", &LockOptions{NoWait: !wait})
			if err == nil || !strings.Contains(err.Error(), "9223372036854775807") || errors.Is(err, ErrLost) {
				t.Errorf("err = %v", err)
			}
		}
		if w.State("job") != lease.Available {
			t.Errorf("the lock is %v", w.State("job"))
		}
	})
}
