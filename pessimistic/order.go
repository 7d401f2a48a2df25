// Package tickets orders those who wait for a lock.
//
// While a lock is held its blob takes no write but the holder's, so its waiters sign up in an append blob beside it: see
// Blob. The place at which the service puts a ticket is its number. The lock's record, which each holder writes, says which
// number is next: see Order. Everything here is about order and pace. Who holds the lock is decided by its lease alone, so a
// wrong or forged value costs time and fairness, and nothing else.
package tickets

import (
	"cmp"
	"fmt"
	"strconv"
	"strings"
	"time"
)

// Order is the part of a lock's record that orders its waiters.
type Order struct {
	Turn   int64         // the number of the present turn; 0 if the record says nothing
	Next   int64         // the first ticket that has not had its turn
	Issued int64         // how many tickets the holder knows of
	Length time.Duration // from one turn to the next, on average; 0 if unknown
}

// Bounds of what is believed. No lock has had more turns or tickets, and no longer turn tells when the next one ends.
const (
	most    = int64(1) << 53
	longest = time.Hour
)

// Parse reads the form that String writes. Any other says nothing.
func Parse(s string) Order {
	fields := strings.Fields(s)
	if len(s) > 80 || len(fields) != 4 {
		return Order{}
	}
	var numbers [4]int64
	for i, field := range fields {
		n, err := strconv.ParseInt(field, 10, 64)
		if err != nil || n < 0 || n > most {
			return Order{}
		}
		numbers[i] = n
	}
	length := time.Duration(min(numbers[3], longest.Milliseconds())) * time.Millisecond
	return Order{Turn: numbers[0], Next: numbers[1], Issued: numbers[2], Length: length}
}

// String returns the numbers, and the length in milliseconds.
func (o Order) String() string {
	return fmt.Sprintf("%d %d %d %d", o.Turn, o.Next, o.Issued, o.Length.Milliseconds())
}

// Waiting returns how many tickets are known that have not had their turn.
func (o Order) Waiting() int64 { return max(o.Issued-o.Next, 0) }

// Latest returns the order of locks that share their tickets: the record of the latest turn says how far they have been
// served, and any record of that age or an older one may know of another ticket.
func Latest(all ...Order) (latest Order) {
	for _, o := range all {
		if c := cmp.Or(cmp.Compare(o.Turn, latest.Turn), cmp.Compare(o.Next, latest.Next)); c > 0 {
			latest, o = o, latest
		}
		if o.Next <= latest.Next {
			latest.Issued = max(latest.Issued, o.Issued)
		}
	}
	return latest
}

// Ticket is a waiter's place. The zero Ticket is none.
type Ticket struct {
	number int64 // from 1; 0 if there is none
	fresh  bool  // it was issued by a blob that is younger than the record: its numbers begin again
}

// Rank returns how many tickets come before t. A waiter whose ticket has been passed over is not behind anybody, and neither
// is one without a ticket, where none can be had.
func (t Ticket) Rank(o Order) int64 {
	place := t.number - 1
	switch {
	case t.number == 0:
		return 0
	case place < o.Next && t.fresh:
		return place // the record still counts the tickets of the blob before
	}
	return max(place-o.Next, 0)
}

// Hidden reports whether the record shows neither t, which was passed over, nor another waiter: whoever comes does not know
// then that anybody waits.
func (t Ticket) Hidden(o Order) bool {
	return t.number > 0 && t.number <= o.Next && !t.fresh && o.Waiting() == 0
}

// Taken returns the order that the next holder, who has ticket t, writes into the record. watched is how long it has seen
// the lock being held by others, in so many turns.
func (o Order) Taken(t Ticket, watched time.Duration, turns float64) Order {
	o.Turn++
	if t.number > 0 {
		if t.fresh && t.number <= o.Next {
			o.Next, o.Issued = 0, 0
		}
		o.Next, o.Issued = max(o.Next, t.number), max(o.Issued, t.number)
	}
	if o.Waiting() > crowd {
		o.Issued = o.Next // forged, or of a blob that is gone: whoever waits is found at the release
	}
	if turns > 0 {
		seen := min(max(time.Duration(float64(watched)/turns), time.Millisecond), longest)
		if o.Length > 0 {
			seen = o.Length + (seen-o.Length)/4
		}
		o.Length = seen
	}
	return o
}

// crowd is the largest number of waiters that is believed.
const crowd = 10_000

// Abandoned returns the order after all the tickets that are known were passed over.
func (o Order) Abandoned() Order {
	o.Next = max(o.Next, o.Issued)
	return o
}
