package pessimistic

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/azconc/azconc/pkg/aztest/bubble"
)

func TestRemainingFollowsRenewalsBreaksAndTheEnd(t *testing.T) {
	inBubble(t, func(t *testing.T, w *world) {
		l := acquired(t, w, &AcquireOptions{Duration: 15 * time.Second})
		want := func(when string, stop, end time.Duration) <-chan struct{} {
			t.Helper()
			synctest.Wait()
			gotStop, gotEnd, changed := l.Remaining()
			if gotStop != stop || gotEnd != end {
				t.Errorf("%s: %v and %v, want %v and %v", when, gotStop, gotEnd, stop, end)
			}
			return changed
		}
		closed := func(when string, changed <-chan struct{}) {
			synctest.Wait()
			t.Helper()
			select {
			case <-changed:
			default:
				t.Errorf("%s: changed is not closed", when)
			}
		}
		want("acquired", 10*time.Second, 15*time.Second)
		bubble.Sleep(4 * time.Second)
		changed := want("4 s later", 6*time.Second, 11*time.Second)
		bubble.Sleep(time.Second)
		closed("renewed", changed)
		changed = want("renewed", 10*time.Second, 15*time.Second)
		brokenByAnother(t, w, 6*time.Second)
		bubble.Sleep(5 * time.Second)
		closed("found to be broken", changed)
		changed = want("found to be broken", 0, 10*time.Second)
		bubble.Sleep(2 * time.Second)
		closed("over", changed)
		want("over", 0, 0)
		mustLost(t, l.Release(t.Context()), Broken)
	})
	inBubble(t, func(t *testing.T, w *world) {
		l := acquired(t, w, &AcquireOptions{Duration: Infinite})
		if stop, end, _ := l.Remaining(); stop != Endless || end != Endless {
			t.Errorf("infinite: %v and %v", stop, end)
		}
		brokenByAnother(t, w, 15*time.Second)
		bubble.Sleep(10 * time.Second)
		synctest.Wait()
		if stop, end, _ := l.Remaining(); stop != 0 || end != maxDuration {
			t.Errorf("infinite, but broken: %v and %v", stop, end)
		}
		mustRelease(t, l)
	})
}

// brokenByAnother breaks the lease as another client does.
func brokenByAnother(t *testing.T, w *world, grace time.Duration) {
	t.Helper()
	if _, err := Break(t.Context(), NewBlob(w.Service.BlockBlob("box", "b")), &BreakOptions{Grace: grace}); err != nil {
		t.Fatal(err)
	}
}
