package once

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/azconc/azconc/pessimistic"
	"github.com/azconc/azconc/pkg/azerr"
	"github.com/azconc/azconc/pkg/aztest"
	"github.com/azconc/azconc/pkg/aztest/outages"
	"github.com/azconc/azconc/pkg/clock"
)

// tableDown is an outage of the table that begins when the function has ended.
func tableDown(r *rig, kind aztest.FaultKind, lasts time.Duration) {
	until := time.Now().Add(lasts)
	r.service.SetFaults(aztest.Fault{Kind: kind, Match: func(q *aztest.Request) bool {
		return strings.Contains(q.Op, "Entit") && time.Now().Before(until)
	}})
}

// A table that did not answer for four seconds when the work was done freed the key, and the next process did the work again.
func TestAResultIsStoredForAsLongAsTheLockIsHeld(t *testing.T) {
	for i, kind := range []aztest.FaultKind{aztest.Refuse, aztest.LoseRequest, aztest.LoseAnswer, aztest.Throttle, aztest.Hang} {
		for k, lasts := range []time.Duration{200 * time.Millisecond, time.Second, 3 * time.Second, 10 * time.Second, 30 * time.Second, 10 * time.Minute} {
			if testing.Short() && (i+k)%2 > 0 {
				continue
			}
			inBubble(t, func(t *testing.T, r *rig) {
				runs := 0
				work := func(context.Context, *pessimistic.Hold) ([]byte, error) {
					runs++
					tableDown(r, kind, lasts)
					return []byte("result"), nil
				}
				out, err := r.once(r.service).Do(t.Context(), "k", nil, work)
				again, err2 := r.once(r.service).Do(t.Context(), "k", nil, work)
				if err != nil || err2 != nil || out.Replayed || string(again.Value) != "result" || runs != 1 {
					t.Errorf("%s for %v: %+v, %v; then %+v, %v after %d runs", kind, lasts, out, err, again, err2, runs)
				}
			})
		}
	}
}

// An outage that begins at any request of Do ends it, or does not, but has the function never run twice while the lock is held. The next
// Do has its result within two seconds of the service.
func TestAnOutageAtAnyRequestNeverRunsTheFunctionTwice(t *testing.T) {
	outages.Each(t, func(t *testing.T, f *outages.Outage) {
		r := &rig{t, aztest.New(nil)}
		o, runs := r.once(r.service), 0
		r.service.SetFaults(f.Fault())
		work := func(context.Context, *pessimistic.Hold) ([]byte, error) { runs++; return []byte("result"), nil }
		_, err := o.Do(t.Context(), "k", nil, work)
		pass(time.Until(f.End()))
		r.service.SetFaults()
		first, began := runs, time.Now()
		out, err2 := o.Do(t.Context(), "k", nil, work)
		lost := errors.Is(err, pessimistic.ErrLost) && f.Lasts > 15*time.Second // a lease does not last longer
		if !lost && (runs != 1 || (err == nil) != (first == 1) || err != nil && !passes(err)) {
			t.Errorf("%v after %d runs, then %d runs", err, first, runs)
		}
		if took := time.Since(began); err2 != nil || string(out.Value) != "result" || took > 2*time.Second {
			t.Errorf("after the outage: %+v, %v after %v", out, err2, took)
		}
	})
}

// The work is done when the caller's context ends: its result is stored for a while all the same.
func TestAResultIsStoredAfterTheEndOfTheContext(t *testing.T) {
	for lasts, stored := range map[time.Duration]bool{0: true, 10 * time.Second: true, time.Hour: false} {
		inBubble(t, func(t *testing.T, r *rig) {
			ctx, cancel := context.WithCancel(t.Context())
			o := r.once(r.service)
			var ended time.Time
			_, err := o.Do(ctx, "k", nil, func(context.Context, *pessimistic.Hold) ([]byte, error) {
				tableDown(r, aztest.Throttle, lasts)
				cancel()
				ended = time.Now()
				return nil, nil
			})
			if took := time.Since(ended); (err == nil) != stored || took > 2*finishGrace {
				t.Errorf("an outage of %v: %v after %v", lasts, err, took)
			}
		})
	}
}

// A replica that waited for another one left at the first refused connection, and nobody was left to take over.
func TestWaitingOutlastsAnOutage(t *testing.T) {
	for _, kind := range []aztest.FaultKind{aztest.Refuse, aztest.LoseRequest, aztest.Throttle, aztest.Hang} {
		inBubble(t, func(t *testing.T, r *rig) {
			first, err := r.begun("k")
			if err != nil {
				t.Fatal(err)
			}
			wire := aztest.Inject(r.service, 1)
			type end struct {
				run *Run
				err error
			}
			ended := make(chan end, 1)
			var refused []error
			go func() {
				run, err := r.once(wire).Await(t.Context(), "k", nil, Wait{Refused: func(err error) error { refused = append(refused, err); return nil }})
				ended <- end{run, err}
			}()
			pass(20 * time.Second)
			wire.SetFaults(aztest.Fault{Kind: kind})
			pass(10 * time.Minute)
			wire.SetFaults()
			_ = first.Release(t.Context())
			got := <-ended
			if got.err != nil || got.run == nil || got.run.Hold().Context().Err() != nil {
				t.Fatalf("%s: %+v", kind, got)
			}
			_ = got.run.Release(t.Context())
			if len(refused) < 10 || !errors.Is(refused[0], ErrInProgress) || errors.Is(refused[len(refused)-1], ErrInProgress) {
				t.Errorf("%s: refused %v", kind, refused)
			}
		})
	}
}

// A wrong address looks like an outage, and must not hang for ever.
func TestAServiceThatNeverAnsweredIsWaitedForForAMinute(t *testing.T) {
	inBubble(t, func(t *testing.T, r *rig) {
		wire := aztest.Inject(r.service, 1)
		o := r.once(wire)
		wire.SetFaults(aztest.Fault{Kind: aztest.Refuse})
		began := time.Now()
		_, err := o.Await(t.Context(), "k", nil, Wait{})
		if took := time.Since(began); !azerr.Classify(err).Transient() || took < time.Minute || took > 80*time.Second {
			t.Errorf("%v after %v", err, took)
		}
	})
}

// The end of a wait is kept, whatever the service does then.
func TestAWaitEndsWhenItHasTo(t *testing.T) {
	over := errors.New("over")
	for _, kind := range []aztest.FaultKind{"", aztest.Refuse, aztest.Throttle, aztest.Hang} {
		inBubble(t, func(t *testing.T, r *rig) {
			first, err := r.begun("k")
			if err != nil {
				t.Fatal(err)
			}
			wire := aztest.Inject(r.service, 1)
			o := r.once(wire)
			if kind != "" {
				time.AfterFunc(5*time.Second, func() { wire.SetFaults(aztest.Fault{Kind: kind}) })
			}
			began := time.Now()
			_, err = o.Await(t.Context(), "k", nil, Wait{Until: began.Add(20 * time.Second), Ended: over})
			if took := time.Since(began); !errors.Is(err, over) || took < 19*time.Second || took > 21*time.Second || kind == "" && !errors.Is(err, ErrInProgress) {
				t.Errorf("%s: %v after %v", kind, err, took)
			}
			_ = first.Release(t.Context())
		})
	}
}

// A machine that was suspended until the wait was over waited on for as long as before.
func TestAWaitEndsAfterASuspension(t *testing.T) {
	inBubble(t, func(t *testing.T, r *rig) {
		began := time.Now()
		clock.Jumped = func() time.Duration {
			if time.Since(began) < 5*time.Second {
				return 0
			}
			return time.Hour
		}
		defer func() { clock.Jumped = nil }() // when nothing that reads it runs any more
		first, err := r.begun("k")
		if err != nil {
			t.Fatal(err)
		}
		_, err = r.once(r.service).Await(t.Context(), "k", nil, Wait{Until: began.Add(20 * time.Minute)})
		if took := time.Since(began); !errors.Is(err, ErrInProgress) || took > 15*time.Second {
			t.Errorf("%v after %v", err, took)
		}
		if err := first.Release(t.Context()); err != nil && !errors.Is(err, pessimistic.ErrLost) {
			t.Error(err)
		}
	})
}

// begun is a process that works on a key.
func (r *rig) begun(key string) (*Run, error) {
	return r.once(r.service).Begin(r.t.Context(), key, nil)
}

// TestARunThatIsReclaimedGoesOn: a *pessimistic.Lease was returned, with which nothing can be finished.
func TestARunThatIsReclaimedGoesOn(t *testing.T) {
	inBubble(t, func(t *testing.T, r *rig) {
		run, err := r.begun("k")
		if err != nil {
			t.Fatal(err)
		}
		r.service.SetFaults(aztest.Fault{Kind: aztest.Refuse})
		pass(2 * time.Minute)
		r.service.SetFaults()
		again, err := run.Reclaim(t.Context())
		if err != nil || again.Hold().Fence() != run.Hold().Fence() {
			t.Fatalf("%v, %v", again, err)
		}
		if _, err := again.Finish(t.Context(), []byte("done")); err != nil {
			t.Error(err)
		}
		if err := again.Release(t.Context()); err != nil {
			t.Error(err)
		}
	})
}
