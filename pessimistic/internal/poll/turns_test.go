package poll

import (
	"context"
	"testing"
	"time"

	"github.com/azconc/azconc/pkg/retry"
)

func every(rand float64) retry.Backoff {
	return Defaults(retry.Backoff{Rand: func() float64 { return rand }})
}

func TestTurnsAreReadAsWritten(t *testing.T) {
	in := Turns{Number: 17, Began: time.Unix(1763850000, 0).UTC(), Length: 12500 * time.Millisecond, Spread: time.Second, Waiters: 0.29}
	if s := in.String(); s != "17 1763850000 12500 1000 29" || ParseTurns(s) != in {
		t.Errorf("%q is read as %+v", s, ParseTurns(s))
	}
	for _, s := range []string{"", "1", "1 2 3 4", "0 2 3 4 5", "-1 2 3 4 5", "1 2 -3 4 5", "1 2 3 4 -5", "1 2 99999999999999 4 5", "1 2 3 4 1e9"} {
		if got := ParseTurns(s); got.Number != 0 && s != "1 2 3 4 1e9" || got.Waiters > 1 {
			t.Errorf("%q is read as %+v", s, got)
		}
	}
}

// TestWaitersShareTheLooks adds up the rates of n waiters that have waited for 0 to n−1 turns.
func TestWaitersShareTheLooks(t *testing.T) {
	for n := 1; n <= 10; n++ {
		turns := Turns{Number: 9, Length: 10 * time.Second, Spread: 4 * time.Second, Waiters: float64(n)}
		sum, last := 0.0, time.Hour
		for w := range uint64(n) {
			pause := turns.Pause(context.Background(), every(0.5), 10*time.Second, w)
			sum += 1 / pause.Seconds()
			if pause > last || pause > 5*time.Second {
				t.Errorf("of %d, the one that has waited for %d turns looks after %v, one that came later after %v", n, w, pause, last)
			}
			last = pause
		}
		if sum < 2.7 || sum > 3.1 {
			t.Errorf("%d waiters look %.2f times a second", n, sum)
		}
	}
}

// TestAWaiterSleepsEarlyInALongTurn: nothing is to be expected before its end.
func TestAWaiterSleepsEarlyInALongTurn(t *testing.T) {
	turns := Turns{Number: 9, Length: 10 * time.Minute, Spread: 2 * time.Second, Waiters: 1}
	for _, tt := range []struct {
		age  time.Duration
		rand float64
		want time.Duration
	}{
		{0, 0, 2500 * time.Millisecond},
		{0, 1, 5 * time.Second},
		{9*time.Minute + 50*time.Second, 0, time.Second}, // 9 s before the end is to be expected, the looks become dense
		{10 * time.Minute, 0.5, 357142857},
		{10*time.Minute + 9*time.Second, 0.5, 357142857},
		{10*time.Minute + 17*time.Second, 0.5, time.Second + 357142857},
		{11 * time.Minute, 0.5, 5 * time.Second},
	} {
		if got := turns.Pause(context.Background(), every(tt.rand), tt.age, 0); got != tt.want {
			t.Errorf("at %v, the next look is after %v, want %v", tt.age, got, tt.want)
		}
	}
}

// TestMoreTurnsThanExpectedMeanMoreWaiters: a crowd that the record does not know of slows down after two turns.
func TestMoreTurnsThanExpectedMeanMoreWaiters(t *testing.T) {
	turns := Turns{Number: 9, Length: 10 * time.Second, Spread: 4 * time.Second, Waiters: 1}
	pause := func(w uint64) time.Duration { return turns.Pause(context.Background(), every(0.5), 10*time.Second, w) }
	if pause(3) < 2*pause(0) {
		t.Errorf("%v after no turn and %v after three", pause(0), pause(3))
	}
}

func TestTheRecordLearns(t *testing.T) {
	began := time.Unix(1763850000, 0).UTC()
	turns := Turns{}
	for range 40 {
		turns = turns.Next(began, time.Minute, 3)
	}
	if turns.Number != 40 || turns.Length != time.Minute || turns.Spread > 20*time.Millisecond || turns.Waiters < 2.9 || turns.Waiters > 3.1 {
		t.Errorf("%+v", turns)
	}
	if next := turns.Next(began.Add(time.Minute), 0, 0); next.Length != turns.Length || next.Waiters != turns.Waiters || next.Number != 41 {
		t.Errorf("a holder that has not waited knows nothing: %+v", next)
	}
}

func TestTheOptionsBoundThePause(t *testing.T) {
	turns := Turns{Number: 9, Length: 10 * time.Second, Waiters: 100}
	b := Defaults(retry.Backoff{Base: time.Second, Cap: 2 * time.Second, Rand: func() float64 { return 1 }})
	if got := turns.Pause(context.Background(), b, 10*time.Second, 0); got > 2*time.Second {
		t.Error(got)
	}
	turns.Waiters = 1
	if got := turns.Pause(context.Background(), b, 10*time.Second, 0); got != time.Second {
		t.Error(got)
	}
}

// TestANumberAtItsEndIsDamage: the next number would be 0, which is not written, so that the record would say for ever what it
// said then, and waiters would look as rarely as they may.
func TestANumberAtItsEndIsDamage(t *testing.T) {
	for _, s := range []string{"18446744073709551615 1 1000 100 100", "18446744073709551614 1 1000 100 100", "9223372036854775808 1 1000 100 100"} {
		if got := ParseTurns(s); got != (Turns{}) {
			t.Errorf("%q is read as %+v", s, got)
		}
	}
	if got := ParseTurns("9223372036854775807 1 1000 100 100"); got.Next(time.Unix(2, 0), 0, 0).Number == 0 {
		t.Errorf("%+v has no next turn", got)
	}
}
