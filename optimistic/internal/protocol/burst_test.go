package protocol

import (
	"testing"
	"time"
)

// passed makes a lineage whose entries, newest first, have these Passed.
func passed(counts ...int) Lineage {
	var l Lineage
	for i := len(counts) - 1; i >= 0; i-- {
		l = l.Push(DefaultLineageSize, Entry{ID: NewWriteID(), Passed: counts[i]})
	}
	return l
}

func TestBurstsAreRecognized(t *testing.T) {
	for _, tt := range []struct {
		l     Lineage
		place int
	}{
		{Lineage{}, 0},
		{passed(0), 0},
		{passed(7, 7, 7, 7), 0},
		{passed(8, 7, 9, 7), 1},
		{passed(31, 30, 29, 28), 3},
		{passed(29, 28, 31, 30, 29, 28), 1},
		{passed(28, 31, 30, 29, 28, 31, 30, 29), 0},
	} {
		if place := tt.l.placeInBurst(0); place != tt.place {
			t.Errorf("%+v: %d come before the newest write in its burst; want %d", tt.l.Writes, place, tt.place)
		}
	}
}

// TestOneCallGoesOnWithABurst: of the calls that begin after a commit, the first goes on, and the others line up behind.
func TestOneCallGoesOnWithABurst(t *testing.T) {
	l := passed(7, 6, 7, 6, 7, 6, 7, 6)
	l.count = 100
	now := time.Now()
	commit := func(trip time.Duration, burst int) string {
		resource := NewWriteID()
		p := newPace(resource, func() float64 { return 0.5 })
		p.noteTrip(trip)
		p.burst, p.ticket, p.ticketed, p.own = burst, 93, true, true
		p.committed(l, now)
		return resource
	}
	begin := func(resource string) (wait time.Duration, ticket int) {
		p := newPace(resource, func() float64 { return 0.5 })
		return p.begin(now), p.ticket
	}

	quick := commit(time.Millisecond, 0)
	if wait, ticket := begin(quick); wait != 0 || ticket != 93 {
		t.Errorf("the next call waits %v with ticket %d, want to go on with ticket 93", wait, ticket)
	}
	second, ticket := begin(quick)
	third, _ := begin(quick)
	if second <= 0 || ticket != 101 || third <= second {
		t.Errorf("the others wait %v with ticket %d, and %v: want them behind the crowd, one after the other", second, ticket, third)
	}
	if wait, _ := begin(commit(time.Millisecond, burstWrites-1)); wait <= 0 {
		t.Error("a burst goes on for ever")
	}
	if wait, _ := begin(commit(5*time.Millisecond, 0)); wait <= 0 {
		t.Error("a burst begins where round trips are long")
	}
}

// TestACallLooksOnceIfNothingMoves: it does not wait for a crowd that is no longer there.
func TestACallLooksOnceIfNothingMoves(t *testing.T) {
	l := passed(31, 30, 29, 28, 31, 30, 29, 28)
	l.count = 100
	p := newPace(NewWriteID(), func() float64 { return 0.5 })
	p.noteTrip(time.Millisecond)
	p.ticket, p.ticketed, p.own = 95, true, true
	now := time.Now()
	if wait, again := p.read(l, now); !again || wait <= 0 {
		t.Errorf("it waits %v and looks again: %v, though others are ahead", wait, again)
	}
	if _, again := p.read(l, now); again {
		t.Error("it looks again, though nothing has moved")
	}
}

// TestAWriterLeftAloneIsNoCrowd: the writes of its own bursts are not those of others.
func TestAWriterLeftAloneIsNoCrowd(t *testing.T) {
	now := time.Now()
	if crowd := passed(3, 2, 1, 0, 3, 2, 1, 0, 3, 2, 1, 0, 3, 2, 1, 0).crowd(now); crowd != 1 {
		t.Errorf("a writer with bursts of its own sees %v calls in progress, want 1", crowd)
	}
	if crowd := passed(7, 6, 5, 4, 7, 6, 5, 4, 7, 6, 5, 4, 7, 6, 5, 4).crowd(now); crowd != 5 {
		t.Errorf("two writers with bursts see a crowd of %v writes, want 5", crowd)
	}
}

// TestASlowEntryIsNoCrowd: one call that took as long as 500 writes, or an entry that says so, made a lone writer wait for 30 others.
func TestASlowEntryIsNoCrowd(t *testing.T) {
	now := time.Now()
	if crowd := passed(0, maxPassed, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0).crowd(now); crowd > 2 {
		t.Errorf("one entry makes a crowd of %v, want 2 at most", crowd)
	}
}
