package pessimistic

import (
	"strings"
	"testing"
	"time"

	"github.com/azconc/azconc/pkg/clock"
)

func TestAnOrderIsReadAsWritten(t *testing.T) {
	in := order{turn: 17, next: 3, issued: 9, length: 12500 * time.Millisecond}
	if s := in.String(); s != "17 3 9 12500" || parseOrder(s) != in {
		t.Errorf("%q is read as %+v", s, parseOrder(s))
	}
	for _, s := range []string{"", "1", "1 2 3", "1 2 3 4 5", "-1 2 3 4", "1 2 3 -4", "1 2 3 x", "1 9007199254740993 3 4", "1 2 3 " + strings.Repeat("0", 90)} {
		if got := parseOrder(s); got != (order{}) {
			t.Errorf("%q is read as %+v", s, got)
		}
	}
	if got := parseOrder("1 2 3 9007199254740992"); got.length != longestTurn {
		t.Errorf("a turn of %v is believed", got.length)
	}
}

func TestTicketsAreServedByTheirNumbers(t *testing.T) {
	o := order{turn: 5, next: 2, issued: 4}
	for number, want := range map[int64]int64{0: 0, 1: 0, 2: 0, 3: 0, 4: 1, 9: 6} {
		if got := (ticket{number: number}).rank(o); got != want {
			t.Errorf("ticket %d is behind %d, want %d", number, got, want)
		}
	}
	if got := (ticket{number: 2, fresh: true}).rank(o); got != 1 {
		t.Errorf("the second ticket of a new blob is behind %d", got)
	}
	if got := o.taken(ticket{number: 4}, 0, 0); got != (order{turn: 6, next: 4, issued: 4}) {
		t.Errorf("the turn of ticket 4, which passed over another, leaves %+v", got)
	}
	if got := o.taken(ticket{number: 2}, 0, 0); got.next != 2 || got.waiting() != 2 {
		t.Errorf("the turn of a ticket that was passed over leaves %+v", got)
	}
	if got := o.taken(ticket{number: 2, fresh: true}, 0, 0); got != (order{turn: 6, next: 2, issued: 2}) {
		t.Errorf("the turn of the second ticket of a new blob leaves %+v", got)
	}
	if got := (order{issued: 20_000}).taken(ticket{}, 0, 0); got.waiting() != 0 {
		t.Errorf("%d waiters are believed", got.waiting())
	}
}

// TestTheLatestRecordOrdersSeveralLocks: the numbers of a blob that was replaced, or of a forged record, count until then.
func TestTheLatestRecordOrdersSeveralLocks(t *testing.T) {
	old, late, same := order{turn: 3, next: 1, issued: 9}, order{turn: 5, next: 4, issued: 5}, order{turn: 5, next: 6, issued: 6, length: time.Second}
	for _, tt := range []struct {
		of   []order
		want order
	}{
		{nil, order{}},
		{[]order{late, old}, order{turn: 5, next: 4, issued: 9}},
		{[]order{old, late, same}, order{turn: 5, next: 6, issued: 9, length: time.Second}},
		{[]order{same, late, old}, order{turn: 5, next: 6, issued: 9, length: time.Second}},
		{[]order{{turn: 4, next: 1000, issued: 1001}, late}, late},
	} {
		if got := latestOrder(tt.of...); got != tt.want {
			t.Errorf("%+v: %+v, want %+v", tt.of, got, tt.want)
		}
	}
}

// TestOnlyWhatWasWatchedIsLearnt: a record that had not been used for 10 days, and was then held for a minute, taught a length
// of 36 h.
func TestOnlyWhatWasWatchedIsLearnt(t *testing.T) {
	o := order{}.taken(ticket{number: 1}, time.Minute, 2)
	if o.length != 30*time.Second {
		t.Errorf("two turns in a minute: %v", o.length)
	}
	if o = o.taken(ticket{number: 2}, 50*time.Second, 1); o.length != 35*time.Second {
		t.Errorf("and one of 50 s: %v", o.length)
	}
	if o = o.taken(ticket{number: 3}, 0, 0); o.length != 35*time.Second {
		t.Errorf("who has watched none: %v", o.length)
	}
}

func TestTheNextLooksMostOften(t *testing.T) {
	for _, length := range []time.Duration{0, 20 * time.Millisecond, time.Second, time.Minute, time.Hour} {
		for _, age := range []time.Duration{0, length / 2, length, 2 * length, 100 * time.Hour} {
			p := pacing{length: length, age: age, cap: 5 * time.Second}
			last := time.Duration(0)
			for rank := range int64(300) {
				got := p.interval(rank)
				if got < last || got > p.cap || got <= 0 {
					t.Fatalf("%v into a turn of %v, one behind %d looks after %v, one before it after %v", age, length, rank, got, last)
				}
				last = got
			}
		}
	}
	end := pacing{length: time.Minute, age: time.Minute, cap: 5 * time.Second}
	if got := end.interval(0); got != dense {
		t.Errorf("at the end of a long turn the next looks after %v", got)
	}
}

// TestTheLooksOfATurnAreBounded counts those of the next in line during one turn, however long it lasts.
func TestTheLooksOfATurnAreBounded(t *testing.T) {
	for _, length := range []time.Duration{20 * time.Millisecond, time.Second, 10 * time.Second} {
		looks := 0
		for age := time.Duration(0); age < length; looks++ {
			age += pacing{length: length, age: age, cap: 5 * time.Second}.interval(0)
		}
		if looks > 16 {
			t.Errorf("%d looks in a turn of %v", looks, length)
		}
	}
}

func TestASilentWaiterIsPassedOverWithinASecond(t *testing.T) {
	for _, length := range []time.Duration{0, 20 * time.Millisecond, time.Second, time.Minute} {
		p := pacing{length: length, age: length, trip: 5 * time.Millisecond, cap: 5 * time.Second}
		found, turns := clock.Now(), starts{}
		for i := range turns {
			turns[i] = found.Add(-time.Duration(i+1) * max(length, time.Second))
		}
		if got := p.silence(1, turns, found); got > time.Second || got < p.interval(0) {
			t.Errorf("turns of %v: after %v", length, got)
		}
		if all := p.silence(1<<40, turns, found); all != mostSilence {
			t.Errorf("turns of %v: all for %v", length, all)
		}
	}
}
