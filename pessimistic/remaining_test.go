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
		if err := l.Break(t.Context(), &BreakOptions{Grace: 6 * time.Second}); err != nil {
			t.Fatal(err)
		}
		closed("broken", changed)
		changed = want("broken", 4*time.Second, 6*time.Second)
		bubble.Sleep(4 * time.Second)
		closed("stopped", changed)
		changed = want("stopped", 0, 2*time.Second)
		mustRelease(t, l)
		closed("released", changed)
		want("released", 0, 0)
	})
	inBubble(t, func(t *testing.T, w *world) {
		l := acquired(t, w, &AcquireOptions{Duration: Infinite})
		if stop, end, _ := l.Remaining(); stop != Endless || end != Endless {
			t.Errorf("infinite: %v and %v", stop, end)
		}
		if err := l.Break(t.Context(), &BreakOptions{Grace: 6 * time.Second}); err != nil {
			t.Fatal(err)
		}
		if stop, end, _ := l.Remaining(); stop != 4*time.Second || end != 6*time.Second {
			t.Errorf("infinite, but broken: %v and %v", stop, end)
		}
		mustRelease(t, l)
	})
}
