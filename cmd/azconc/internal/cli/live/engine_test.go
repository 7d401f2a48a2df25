package live

import (
	"context"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	tea "charm.land/bubbletea/v2"

	"github.com/azconc/azconc/pkg/aztest/bubble"
)

// running starts an engine whose rounds take a while, and returns when they began and what it has sent.
func running(t *testing.T, interval, takes time.Duration) (e *engine, began func() []time.Duration, sent func() []tea.Msg, stop func()) {
	t.Helper()
	var mu sync.Mutex
	var starts []time.Duration
	var messages []tea.Msg
	zero := time.Now()
	e = newEngine(func(ctx context.Context) round {
		mu.Lock()
		starts = append(starts, time.Since(zero))
		mu.Unlock()
		select {
		case <-time.After(takes):
		case <-ctx.Done():
		}
		return round{}
	}, interval)
	e.send = func(m tea.Msg) {
		mu.Lock()
		defer mu.Unlock()
		messages = append(messages, m)
	}
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan struct{})
	go func() {
		defer close(done)
		e.run(ctx)
	}()
	read := func() []time.Duration { mu.Lock(); defer mu.Unlock(); return slices.Clone(starts) }
	return e, read, func() []tea.Msg { mu.Lock(); defer mu.Unlock(); return slices.Clone(messages) }, func() { cancel(); <-done }
}

func TestRoundsDoNotOverlap(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		_, began, _, stop := running(t, 5*time.Second, 7*time.Second)
		bubble.Sleep(30 * time.Second)
		stop()
		if want := []time.Duration{0, 12 * time.Second, 24 * time.Second}; !slices.Equal(began(), want) {
			t.Errorf("rounds begin at %v, want %v: an interval after the end of the last one", began(), want)
		}
	})
}

func TestNoRoundBeginsWhileTheScreenHoldsThem(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e, began, _, stop := running(t, 5*time.Second, time.Second)
		bubble.Sleep(2 * time.Second)
		e.after(hold)
		bubble.Sleep(time.Hour)
		if n := len(began()); n != 1 {
			t.Errorf("%d rounds during a pause", n)
		}
		e.after(0)
		bubble.Sleep(time.Hour) // the screen does not answer: no round follows one that was asked for
		if n := len(began()); n != 2 {
			t.Errorf("%d rounds, want one that was asked for", n)
		}
		e.after(time.Minute)
		bubble.Sleep(59 * time.Second)
		n := len(began())
		bubble.Sleep(2 * time.Second)
		if len(began()) != n+1 {
			t.Errorf("%d rounds before a minute, %d after it", n, len(began()))
		}
		stop()
	})
}

func TestAnActionEndsWhenItIsStoppedAndIsReportedWhenTheScreenIsLeft(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e, _, sent, stop := running(t, time.Hour, 0)
		endless := &Action{Command: "azconc queue redrive", Do: func(ctx context.Context, note func(string)) (string, error) {
			note("moved 1")
			<-ctx.Done()
			return "moved 1", context.Cause(ctx)
		}}
		e.do(endless)
		synctest.Wait()
		e.stop()
		synctest.Wait()
		e.stop() // nothing is carried out
		all := sent()
		if last, ok := all[len(all)-1].(doneMsg); !ok || last.text != "moved 1" || last.err == nil || !slices.ContainsFunc(all, func(m tea.Msg) bool { return m == noteMsg("moved 1") }) || e.unseen != nil {
			t.Errorf("%+v, unseen %v", all, e.unseen)
		}
		e.do(endless)
		synctest.Wait()
		stop()
		if e.unseen == nil || e.unseen.text != "moved 1" {
			t.Errorf("left while it ran: %+v", e.unseen)
		}
	})
}

func TestTheLastMinuteIsCounted(t *testing.T) {
	var w window
	zero := time.Now()
	total := int64(0)
	for i := range 100 {
		total += 3
		got := w.count(zero.Add(time.Duration(i)*5*time.Second), total)
		if want := int64(min(i+1, 12) * 3); got != want {
			t.Fatalf("after %d rounds %d, want %d", i+1, got, want)
		}
	}
	if len(w.seen) > 13 {
		t.Errorf("%d samples are kept", len(w.seen))
	}
	if got := w.count(zero.Add(time.Hour), total); got != 0 {
		t.Errorf("%d after an hour without requests", got)
	}
}
