package tickets

import (
	"strings"
	"testing"
	"time"
)

func TestAnOrderIsReadAsWritten(t *testing.T) {
	in := Order{Turn: 17, Next: 3, Issued: 9, Length: 12500 * time.Millisecond}
	if s := in.String(); s != "17 3 9 12500" || Parse(s) != in {
		t.Errorf("%q is read as %+v", s, Parse(s))
	}
	for _, s := range []string{"", "1", "1 2 3", "1 2 3 4 5", "-1 2 3 4", "1 2 3 -4", "1 2 3 x", "1 9007199254740993 3 4", "1 2 3 " + strings.Repeat("0", 90)} {
		if got := Parse(s); got != (Order{}) {
			t.Errorf("%q is read as %+v", s, got)
		}
	}
	if got := Parse("1 2 3 9007199254740992"); got.Length != longest {
		t.Errorf("a turn of %v is believed", got.Length)
	}
}

func TestTicketsAreServedByTheirNumbers(t *testing.T) {
	o := Order{Turn: 5, Next: 2, Issued: 4}
	for number, want := range map[int64]int64{0: 0, 1: 0, 2: 0, 3: 0, 4: 1, 9: 6} {
		if got := (Ticket{number: number}).Rank(o); got != want {
			t.Errorf("ticket %d is behind %d, want %d", number, got, want)
		}
	}
	if got := (Ticket{number: 2, fresh: true}).Rank(o); got != 1 {
		t.Errorf("the second ticket of a new blob is behind %d", got)
	}
	if got := o.Taken(Ticket{number: 4}, 0, 0); got != (Order{Turn: 6, Next: 4, Issued: 4}) {
		t.Errorf("the turn of ticket 4, which passed over another, leaves %+v", got)
	}
	if got := o.Taken(Ticket{number: 2}, 0, 0); got.Next != 2 || got.Waiting() != 2 {
		t.Errorf("the turn of a ticket that was passed over leaves %+v", got)
	}
	if got := o.Taken(Ticket{number: 2, fresh: true}, 0, 0); got != (Order{Turn: 6, Next: 2, Issued: 2}) {
		t.Errorf("the turn of the second ticket of a new blob leaves %+v", got)
	}
	if got := (Order{Issued: 20_000}).Taken(Ticket{}, 0, 0); got.Waiting() != 0 {
		t.Errorf("%d waiters are believed", got.Waiting())
	}
}

// TestTheLatestRecordOrdersSeveralLocks: the numbers of a blob that was replaced, or of a forged record, count until then.
func TestTheLatestRecordOrdersSeveralLocks(t *testing.T) {
	old, late, same := Order{Turn: 3, Next: 1, Issued: 9}, Order{Turn: 5, Next: 4, Issued: 5}, Order{Turn: 5, Next: 6, Issued: 6, Length: time.Second}
	for _, tt := range []struct {
		of   []Order
		want Order
	}{
		{nil, Order{}},
		{[]Order{late, old}, Order{Turn: 5, Next: 4, Issued: 9}},
		{[]Order{old, late, same}, Order{Turn: 5, Next: 6, Issued: 9, Length: time.Second}},
		{[]Order{same, late, old}, Order{Turn: 5, Next: 6, Issued: 9, Length: time.Second}},
		{[]Order{{Turn: 4, Next: 1000, Issued: 1001}, late}, late},
	} {
		if got := Latest(tt.of...); got != tt.want {
			t.Errorf("%+v: %+v, want %+v", tt.of, got, tt.want)
		}
	}
}

// TestOnlyWhatWasWatchedIsLearnt: a record that had not been used for 10 days, and was then held for a minute, taught a length
// of 36 h.
func TestOnlyWhatWasWatchedIsLearnt(t *testing.T) {
	o := Order{}.Taken(Ticket{number: 1}, time.Minute, 2)
	if o.Length != 30*time.Second {
		t.Errorf("two turns in a minute: %v", o.Length)
	}
	if o = o.Taken(Ticket{number: 2}, 50*time.Second, 1); o.Length != 35*time.Second {
		t.Errorf("and one of 50 s: %v", o.Length)
	}
	if o = o.Taken(Ticket{number: 3}, 0, 0); o.Length != 35*time.Second {
		t.Errorf("who has watched none: %v", o.Length)
	}
}

func TestTheNextLooksMostOften(t *testing.T) {
	for _, length := range []time.Duration{0, 20 * time.Millisecond, time.Second, time.Minute, time.Hour} {
		for _, age := range []time.Duration{0, length / 2, length, 2 * length, 100 * time.Hour} {
			p := Pace{Length: length, Age: age, Cap: 5 * time.Second}
			last := time.Duration(0)
			for rank := range int64(300) {
				got := p.Interval(rank)
				if got < last || got > p.Cap || got <= 0 {
					t.Fatalf("%v into a turn of %v, one behind %d looks after %v, one before it after %v", age, length, rank, got, last)
				}
				last = got
			}
		}
	}
	end := Pace{Length: time.Minute, Age: time.Minute, Cap: 5 * time.Second}
	if got := end.Interval(0); got != dense {
		t.Errorf("at the end of a long turn the next looks after %v", got)
	}
}

// TestTheLooksOfATurnAreBounded counts those of the next in line during one turn, however long it lasts.
func TestTheLooksOfATurnAreBounded(t *testing.T) {
	for _, length := range []time.Duration{20 * time.Millisecond, time.Second, 10 * time.Second} {
		looks := 0
		for age := time.Duration(0); age < length; looks++ {
			age += Pace{Length: length, Age: age, Cap: 5 * time.Second}.Interval(0)
		}
		if looks > 16 {
			t.Errorf("%d looks in a turn of %v", looks, length)
		}
	}
}

func TestASilentWaiterIsPassedOverWithinASecond(t *testing.T) {
	for _, length := range []time.Duration{0, 20 * time.Millisecond, time.Second, time.Minute} {
		p := Pace{Length: length, Age: length, Trip: 5 * time.Millisecond, Cap: 5 * time.Second}
		if got := p.Silence(1); got > time.Second || got < p.Interval(0) {
			t.Errorf("turns of %v: after %v", length, got)
		}
		if p.Silence(0) != 0 || p.Silence(1<<40) != patience {
			t.Errorf("turns of %v: nobody for %v, all for %v", length, p.Silence(0), p.Silence(1<<40))
		}
	}
}
