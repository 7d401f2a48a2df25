package group

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/azconc/azconc/pessimistic"
	"github.com/azconc/azconc/pessimistic/internal/pesstest"
	"github.com/azconc/azconc/pkg/aztest/bubble"
	"github.com/azconc/azconc/pkg/lease"
	"github.com/azconc/azconc/pkg/retry"
)

func lockerOver(w *pesstest.World, opts *pessimistic.LockerOptions) *pessimistic.Locker {
	w.T.Helper()
	k, err := pessimistic.NewLocker(w.Container(), opts)
	if err != nil {
		w.T.Fatal(err)
	}
	return k
}

func groupOf(w *pesstest.World, parts int, opts *Options) *Group {
	w.T.Helper()
	g, err := New(lockerOver(w, &pessimistic.LockerOptions{Owner: "web"}), "ingest", parts, opts)
	if err != nil {
		w.T.Fatal(err)
	}
	return g
}

// running runs a group until stop is called, which returns what Run has returned.
func running(g *Group, work Work) (stop func() error) {
	ctx, cancel := context.WithCancelCause(context.Background())
	done := make(chan error, 1)
	go func() { done <- g.Run(ctx, work) }()
	return func() error {
		cancel(errTerm)
		return <-done
	}
}

// obedient is work that returns when its context ends.
func obedient(ctx context.Context, _ int, _ *pessimistic.Hold) error {
	<-ctx.Done()
	return context.Cause(ctx)
}

func TestAMemberSendsTheRequestsThatItSays(t *testing.T) {
	pesstest.InBubble(t, func(t *testing.T, w *pesstest.World) {
		stop := running(groupOf(w, 1, nil), obedient)
		bubble.Sleep(2500 * time.Millisecond)
		if err := stop(); !errors.Is(err, errTerm) {
			t.Errorf("Run = %v", err)
		}
		// To become a member, a look, the part the first time, and to leave; the looks at leaving are for waiters, in any order.
		got := without(w.Ops(), "list", 1)
		if n := len(got) - 4; n > 0 {
			slices.Sort(got[n:])
		}
		if want := "look put acquire stamp list look put acquire stamp delete get get release"; strings.Join(got, " ") != want {
			t.Errorf("sent %v, want %s", got, want)
		}
	})
}

// without returns ops without all of one kind but the first, of which there are n more at least.
func without(ops []string, what string, n int) (left []string) {
	seen := 0
	for _, op := range ops {
		if op == what {
			if seen++; seen > 1 {
				continue
			}
		}
		left = append(left, op)
	}
	if seen <= n {
		return append(left, fmt.Sprint("too few: ", what))
	}
	return left
}

func TestWorkThatEndsIsBegunAgainAfterAPause(t *testing.T) {
	pesstest.InBubble(t, func(t *testing.T, w *pesstest.World) {
		for _, c := range []struct {
			err         error
			least, most int
		}{{nil, 290, 600}, {errors.New("failed"), 12, 25}} {
			var called atomic.Int64
			stop := running(groupOf(w, 1, nil), func(context.Context, int, *pessimistic.Hold) error { called.Add(1); return c.err })
			bubble.Sleep(10 * time.Minute)
			if calls := int(called.Load()); calls < c.least || calls > c.most {
				t.Errorf("work that returns %v was called %d times in 10 minutes, not %d to %d", c.err, calls, c.least, c.most)
			}
			_ = stop()
		}
	})
}

// Work that called runtime.Goexit left its part held, and renewed, with nobody at work, for as long as the process lived.
func TestWorkThatExitsItsGoroutineFreesItsPart(t *testing.T) {
	pesstest.InBubble(t, func(t *testing.T, w *pesstest.World) {
		var called atomic.Int64
		stop := running(groupOf(w, 1, nil), func(ctx context.Context, part int, h *pessimistic.Hold) error {
			if called.Add(1) == 1 {
				runtime.Goexit()
			}
			return obedient(ctx, part, h)
		})
		bubble.Sleep(15 * time.Second) // two looks
		if got := called.Load(); got != 2 {
			t.Errorf("the work was called %d times", got)
		}
		if err := stop(); !errors.Is(err, errTerm) {
			t.Errorf("Run = %v", err)
		}
	})
}

func TestWorkThatHangsDoesNotKeepItsPart(t *testing.T) {
	pesstest.InBubble(t, func(t *testing.T, w *pesstest.World) {
		hangs := make(chan struct{})
		var began, took atomic.Int64
		first := running(groupOf(w, 1, &Options{Drain: 10 * time.Second}), func(ctx context.Context, _ int, _ *pessimistic.Hold) error {
			<-ctx.Done()
			began.Store(time.Now().UnixNano())
			<-hangs
			return nil
		})
		bubble.Sleep(5 * time.Second)
		second := groupOf(w, 1, nil)
		stop := running(second, func(ctx context.Context, _ int, h *pessimistic.Hold) error {
			took.Store(time.Now().UnixNano())
			return obedient(ctx, 0, h)
		})
		bubble.Sleep(time.Minute)
		left := make(chan error, 1)
		go func() { left <- first() }()
		bubble.Sleep(20 * time.Second)
		if after := time.Duration(took.Load() - began.Load()); after < 10*time.Second || after > 17*time.Second {
			t.Errorf("the part was taken %v after its context ended", after)
		}
		select {
		case err := <-left:
			t.Errorf("Run returned before its work: %v", err)
		default:
		}
		if have, of := second.Share(); have != 1 || of != 1 {
			t.Errorf("the other has %d of %d", have, of)
		}
		close(hangs)
		_ = stop()
		<-left
	})
}

func TestWorkEndsAGroupOnlyByAMark(t *testing.T) {
	pesstest.InBubble(t, func(t *testing.T, w *pesstest.World) {
		over := errors.New("over")
		for name, mark := range map[string]func(error) error{"Stop": retry.Stop, "Keep": Keep} {
			g := groupOf(w, 4, nil)
			var held *pessimistic.Hold
			var drained sync.WaitGroup
			drained.Add(3)
			err := g.Run(t.Context(), func(ctx context.Context, part int, h *pessimistic.Hold) error {
				if part == 2 {
					bubble.Sleep(10 * time.Second)
					held = h
					return mark(over)
				}
				defer drained.Done()
				return obedient(ctx, part, h)
			})
			drained.Wait()
			if !errors.Is(err, over) || err != over {
				t.Errorf("%s: Run = %v", name, err)
			}
			if state := w.State("ingest/2"); (state == lease.Leased) != (name == "Keep") {
				t.Errorf("%s: the lease is %v", name, state)
			}
			_ = held.Release(t.Context())
			if leased := w.Leased(); len(leased) > 0 {
				t.Errorf("%s: %v are leased", name, leased)
			}
		}
	})
}

func TestAMemberLeavesWithinItsDrain(t *testing.T) {
	pesstest.InBubble(t, func(t *testing.T, w *pesstest.World) {
		stop := running(groupOf(w, 8, &Options{Drain: 5 * time.Second}), func(ctx context.Context, part int, _ *pessimistic.Hold) error {
			<-ctx.Done()
			bubble.Sleep(time.Duration(part) * 600 * time.Millisecond)
			return nil
		})
		bubble.Sleep(30 * time.Second)
		began := time.Now()
		if err := stop(); !errors.Is(err, errTerm) || time.Since(began) > 6*time.Second {
			t.Errorf("Run = %v after %v", err, time.Since(began))
		}
		seen, err := look(t.Context(), lockerOver(w, nil), "ingest", 8)
		if err != nil || len(seen.Members)+seen.dead != 0 {
			t.Errorf("it left %d members and %d blobs, %v", len(seen.Members), seen.dead, err)
		}
		if leased := w.Leased(); len(leased) > 0 {
			t.Errorf("%v are leased", leased)
		}
	})
}

func TestMembersWithOtherNumbersOfPartsDoNotMix(t *testing.T) {
	pesstest.InBubble(t, func(t *testing.T, w *pesstest.World) {
		stop := running(groupOf(w, 16, nil), obedient)
		bubble.Sleep(10 * time.Second)
		err := groupOf(w, 32, nil).Run(t.Context(), obedient)
		if !errors.Is(err, ErrMixed) {
			t.Errorf("Run = %v", err)
		}
		for _, want := range []string{"32 parts", "16 parts", "web"} {
			if !strings.Contains(fmt.Sprint(err), want) {
				t.Errorf("%v does not name %s", err, want)
			}
		}
		_ = stop()
		stop = running(groupOf(w, 32, nil), obedient) // once nobody has the other number
		bubble.Sleep(10 * time.Second)
		if seen, err := Show(t.Context(), lockerOver(w, nil), "ingest"); err != nil || len(seen.Parts) != 32 || len(seen.Members) != 1 || seen.Members[0].Parts != 32 {
			t.Errorf("%+v, %v", seen, err)
		}
		_ = stop()
		later, err := lockerOver(w, nil).Lock(t.Context(), "ingest/member/later", nil)
		if err != nil {
			t.Fatal(err)
		}
		defer func() { _ = later.Release(t.Context()) }()
		if err := groupOf(w, 32, nil).Run(t.Context(), obedient); err == nil || !strings.Contains(err.Error(), "another version") {
			t.Errorf("Run beside a member of another version = %v", err)
		}
	})
}

func TestShowOfAGroup(t *testing.T) {
	pesstest.InBubble(t, func(t *testing.T, w *pesstest.World) {
		if _, err := Show(t.Context(), lockerOver(w, nil), "ingest"); !errors.Is(err, pessimistic.ErrNotFound) {
			t.Errorf("Show of nothing = %v", err)
		}
		stop := running(groupOf(w, 2, nil), obedient)
		bubble.Sleep(8 * time.Second) // not when a lease is renewed
		w.Reset()
		seen, err := Show(t.Context(), lockerOver(w, nil), "ingest")
		w.WantOps("list")
		if err != nil || len(seen.Parts) != 2 || len(seen.Members) != 1 {
			t.Fatalf("%+v, %v", seen, err)
		}
		m := seen.Members[0]
		for i, p := range seen.Parts {
			if p.Number != i || !p.Held || p.Owner != "web" || p.Member != m.ID || p.Fence == 0 || p.Since.IsZero() {
				t.Errorf("%+v", p)
			}
		}
		if m.Owner != "web" || m.Parts != 2 || m.Since.IsZero() {
			t.Errorf("%+v", m)
		}
		_ = stop()
		if seen, err = Show(t.Context(), lockerOver(w, nil), "ingest"); err != nil || len(seen.Parts) != 2 || len(seen.Members) != 0 || seen.Parts[0].Held {
			t.Errorf("afterwards %+v, %v", seen, err)
		}
	})
}

func TestBlobsOfDeadMembersAreDeleted(t *testing.T) {
	pesstest.InBubble(t, func(t *testing.T, w *pesstest.World) {
		v := newTown(t, w, 1, 2)
		v.kill(v.joinAfter(10 * time.Second))
		bubble.Sleep(time.Hour)
		r := v.joinAfter(10 * time.Second)
		seen, err := look(t.Context(), lockerOver(w, nil), "ingest", 2)
		if err != nil || seen.dead != 0 || len(seen.Members) != 1 || seen.Members[0].ID != r.group.id {
			t.Errorf("%+v, %v", seen, err)
		}
		v.end()
	})
}

func (v *town) joinAfter(d time.Duration) *resident {
	r := v.join()
	bubble.Sleep(d)
	return r
}

func TestAPartThatSomebodyElseHoldsIsLeftAlone(t *testing.T) {
	pesstest.InBubble(t, func(t *testing.T, w *pesstest.World) {
		h, err := lockerOver(w, &pessimistic.LockerOptions{Owner: "an operator"}).Lock(t.Context(), "ingest/1", nil)
		if err != nil {
			t.Fatal(err)
		}
		g := groupOf(w, 3, nil)
		stop := running(g, obedient)
		bubble.Sleep(5 * time.Minute)
		w.Reset()
		bubble.Sleep(time.Minute)
		lists := 0
		for _, op := range w.Ops() {
			if op == "list" {
				lists++
			}
		}
		if have, _ := g.Share(); have != 2 || h.Err() != nil || lists > 13 {
			t.Errorf("it has %d parts, the operator %v, and it looked %d times in a minute", have, h.Err(), lists)
		}
		_ = h.Release(t.Context())
		bubble.Sleep(7 * time.Second)
		if have, _ := g.Share(); have != 3 {
			t.Errorf("afterwards it has %d parts", have)
		}
		_ = stop()
	})
}

func TestAGroupThatCannotBeIsRefused(t *testing.T) {
	pesstest.InBubble(t, func(t *testing.T, w *pesstest.World) {
		k := lockerOver(w, nil)
		for _, c := range []struct {
			k     *pessimistic.Locker
			name  string
			parts int
			opts  *Options
		}{
			{nil, "g", 1, nil}, {k, "", 1, nil}, {k, "g", 0, nil}, {k, "g", 257, nil}, {k, "g", 1, &Options{Drain: -1}},
			{k, strings.Repeat("g", 1010), 1, nil}, {lockerOver(w, &pessimistic.LockerOptions{Duration: pessimistic.Infinite}), "g", 1, nil},
			{lockerOver(w, &pessimistic.LockerOptions{Owner: strings.Repeat("o", 500)}), "g", 1, nil},
		} {
			if _, err := New(c.k, c.name, c.parts, c.opts); err == nil {
				t.Errorf("New(%.10q, %d, %+v) = no error", c.name, c.parts, c.opts)
			}
		}
		w.Put("ingest/0", "data")
		if err := groupOf(w, 1, nil).Run(t.Context(), obedient); !errors.Is(err, pessimistic.ErrContent) {
			t.Errorf("Run with a part that has content = %v", err)
		}
		if _, err := w.Service.Container("box").Delete(t.Context(), nil); err != nil {
			t.Fatal(err)
		}
		if err := groupOf(w, 1, nil).Run(t.Context(), obedient); !errors.Is(err, pessimistic.ErrNotFound) {
			t.Errorf("Run without a container = %v", err)
		}
	})
}
