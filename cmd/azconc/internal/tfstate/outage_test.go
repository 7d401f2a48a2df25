package tfstate

import (
	"errors"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/azconc/azconc/pkg/aztest/bubble"
	"github.com/azconc/azconc/pkg/aztest/outages"
)

// TestAnOutageAtAnyRequestOfARunLosesNothing: the client, which asks three times, pauses 3 s in between, and a state that was
// stored is all there. The next run locks it two seconds after the service is back, or when the lease has ended that nobody could release.
func TestAnOutageAtAnyRequestOfARunLosesNothing(t *testing.T) {
	outages.Each(t, func(t *testing.T, o *outages.Outage) {
		w := newWorld(t)
		w.put("aa")
		v, wire := w.wired()
		wire.SetFaults(o.Fault())
		began := time.Now()
		err := newClient(t, v, adas, "ada@ci").apply("bb")
		took := time.Since(began)
		v.session.Close()
		bubble.Sleep(time.Until(o.End()))
		got := w.state()
		if !slices.Contains(possible, got) || err == nil && got != "aabb" || err != nil && took < 3*time.Second {
			t.Errorf("%v after %v, the state is %q, notes %v", err, took, got, w.notes)
		}
		bound := time.Second
		if w.leased() {
			bound = time.Minute
		}
		next, _ := w.run()
		defer next.session.Close()
		began = time.Now()
		err = newClient(t, next, bobs, "bob@ci").apply("cc")
		for locked := (*lockedError)(nil); errors.As(err, &locked) && time.Since(began) < bound; {
			bubble.Sleep(time.Second)
			err = newClient(t, next, bobs, "bob@ci").apply("cc")
		}
		if err != nil || w.state() != got+"cc" {
			t.Errorf("the next run after %v: %v, %q", time.Since(began), err, w.state())
		}
	})
}

// The version before was not kept after one connection that was reset, although the write itself waits for five minutes.
func TestTheVersionBeforeIsKeptAfterAnOutage(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		w.put("aa")
		v, cut, resume := w.pausable()
		c := newClient(t, v, adas, "ada@ci")
		if err := c.lock(); err != nil {
			t.Fatal(err)
		}
		if _, err := c.get(); err != nil {
			t.Fatal(err)
		}
		cut()
		time.AfterFunc(20*time.Second, resume)
		if err := c.post("aabb"); err != nil {
			t.Fatal(err)
		}
		if err := c.unlock(); err != nil {
			t.Fatal(err)
		}
		for _, note := range w.notes {
			if strings.Contains(note, "not kept") {
				t.Error(note)
			}
		}
		v.session.Close()
	})
}
