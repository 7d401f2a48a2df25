package pessimistic

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/azconc/azconc/pessimistic/internal/pesstest"
	"github.com/azconc/azconc/pkg/aztest"
	"github.com/azconc/azconc/pkg/aztest/bubble"
	"github.com/azconc/azconc/pkg/lease"
	"github.com/azconc/azconc/pkg/observe"
)

func acquired(t *testing.T, w *world, opts *AcquireOptions) *Lease {
	t.Helper()
	l, err := Acquire(t.Context(), NewBlob(w.Blob("b")), opts)
	if err != nil {
		t.Fatalf("acquire: %v", err)
	}
	return l
}

func TestAFreeLeaseTakesOneRequestToAcquireAndOneToRelease(t *testing.T) {
	inBubble(t, func(t *testing.T, w *world) {
		l := acquired(t, w, nil)
		if !l.Valid() || l.Err() != nil || w.State("b") != lease.Leased {
			t.Errorf("Valid = %v, Err = %v, state %v", l.Valid(), l.Err(), w.State("b"))
		}
		mustRelease(t, l)
		w.WantOps("acquire", "release")
		if w.State("b") != lease.Available {
			t.Errorf("state after release is %v", w.State("b"))
		}
		if l.Valid() || !errors.Is(l.Err(), ErrReleased) || !errors.Is(context.Cause(l.Context()), ErrReleased) {
			t.Errorf("after release: Valid %v, Err %v, cause %v", l.Valid(), l.Err(), context.Cause(l.Context()))
		}
		if err := l.Release(t.Context()); err != nil {
			t.Errorf("a second release: %v", err)
		}
		if s := l.Stats(); s.Requests != 2 {
			t.Errorf("Stats = %+v, want 2 requests", s)
		}
	})
}

func TestALeaseOutlivesItsDurationByBeingRenewedEveryThird(t *testing.T) {
	inBubble(t, func(t *testing.T, w *world) {
		for _, d := range []time.Duration{15 * time.Second, 30 * time.Second, 60 * time.Second} {
			w.Reset()
			l := acquired(t, w, &AcquireOptions{Duration: d})
			bubble.Sleep(10*d + time.Second)
			if l.Context().Err() != nil {
				t.Fatalf("%v: lost: %v", d, context.Cause(l.Context()))
			}
			mustRelease(t, l)
			if got := len(w.Ops()); got != 30+2 {
				t.Errorf("%v: %d requests in ten durations, want 30 renewals, an acquire and a release", d, got)
			}
		}
	})
}

// The next renewal is due a third after the start of the last one, not after its end: an answer that takes long must
// not push the following ones back.
func TestRenewalsAreSpacedFromStartToStart(t *testing.T) {
	inBubble(t, func(t *testing.T, w *world) {
		w.Faults.SetFaults(aztest.Fault{Kind: aztest.Slow, Delay: 4 * time.Second, Match: aztest.Op("Renew Blob Lease")})
		l := acquired(t, w, nil)
		began := time.Now()
		bubble.Sleep(95 * time.Second)
		mustRelease(t, l)
		var at []time.Duration
		for _, r := range w.Faults.Log() {
			if pesstest.Short(r.Op) == "renew" {
				at = append(at, r.At.Sub(began))
			}
		}
		want := []time.Duration{10, 20, 30, 40, 50, 60, 70, 80, 90}
		for i := range want {
			want[i] *= time.Second
		}
		if !slices.Equal(at, want) {
			t.Errorf("renewals at %v, want %v", at, want)
		}
	})
}

func TestDurationsThatTheServiceRefusesAreRefusedBeforeSending(t *testing.T) {
	inBubble(t, func(t *testing.T, w *world) {
		for _, d := range []time.Duration{time.Second, 14 * time.Second, 61 * time.Second, 20*time.Second + 1, -2} {
			_, err := Acquire(t.Context(), NewBlob(w.Blob("b")), &AcquireOptions{Duration: d})
			if err == nil || !strings.Contains(err.Error(), "Duration") || !strings.Contains(err.Error(), "15s") {
				t.Errorf("%v: err = %v, want one that names field and range", d, err)
			}
		}
		if _, err := Acquire(t.Context(), NewBlob(w.Blob("b")), &AcquireOptions{LeaseID: "abc"}); err == nil {
			t.Error("an id that is no GUID was taken; an emulator would take it too, the service not")
		}
		if _, err := Acquire(t.Context(), NewContainer(w.Container()), &AcquireOptions{IfMatch: "x"}); err == nil {
			t.Error("a condition that the SDK drops was taken")
		}
		if _, err := Acquire(t.Context(), nil, nil); err == nil {
			t.Error("nothing was leased without an error")
		}
		w.WantOps()
	})
}

func TestTryAcquireDoesNotWait(t *testing.T) {
	inBubble(t, func(t *testing.T, w *world) {
		holder := w.steal("b", 0)
		began := time.Now()
		_, err := TryAcquire(t.Context(), NewBlob(w.Blob("b")), nil)
		held, ok := errors.AsType[*HeldError](err)
		if !ok || !errors.Is(err, ErrHeld) || held.Resource != "box/b" || codeOf(err) != "LeaseAlreadyPresent" {
			t.Errorf("err = %v (%s)", err, codeOf(err))
		}
		if time.Since(began) != 0 {
			t.Errorf("it took %v", time.Since(began))
		}
		w.WantOps("acquire")
		mustRelease(t, holder)
	})
}

// Waiters look with HEAD only: trying to acquire would fill everybody's logs with 409s (azure-webjobs-sdk#2318).
func TestWaitersOnlySendHEADUntilTheLeaseIsFree(t *testing.T) {
	inBubble(t, func(t *testing.T, w *world) {
		holder := w.steal("b", 0)
		go func() {
			bubble.Sleep(100 * time.Second)
			mustRelease(t, holder)
		}()
		began := time.Now()
		l := acquired(t, w, nil)
		took := time.Since(began)
		if took < 100*time.Second || took > 105*time.Second {
			t.Errorf("acquired after %v, want within the longest pause of 5 s after 100 s", took)
		}
		ops := w.Ops()
		if ops[0] != "acquire" || ops[len(ops)-1] != "acquire" || slices.ContainsFunc(ops[1:len(ops)-1], func(op string) bool { return op != "look" }) {
			t.Errorf("sent %v, want looks between two acquires", ops)
		}
		if looks := len(ops) - 2; looks < 20 || looks > 110 {
			t.Errorf("%d looks in 100 s", looks)
		}
		if got := l.Stats().Waited; got < 100*time.Second || got > took {
			t.Errorf("Waited = %v", got)
		}
		var last time.Time
		for _, r := range w.Faults.Log()[1:] {
			if gap := r.At.Sub(last); !last.IsZero() && pesstest.Short(r.Op) == "look" && (gap < 250*time.Millisecond || gap > 5*time.Second) {
				t.Errorf("a pause of %v, want 250 ms to 5 s", gap)
			}
			last = r.At
		}
		mustRelease(t, l)
	})
}

func TestWaitingEndsWhenItsTimeIsOver(t *testing.T) {
	inBubble(t, func(t *testing.T, w *world) {
		holder := w.steal("b", 0)
		began := time.Now()
		_, err := Acquire(t.Context(), NewBlob(w.Blob("b")), &AcquireOptions{MaxWait: 20 * time.Second})
		held, ok := errors.AsType[*HeldError](err)
		if !ok || held.Waited != 20*time.Second || time.Since(began) != 20*time.Second {
			t.Errorf("err = %v after %v, want a *HeldError after 20 s", err, time.Since(began))
		}
		if last := w.Faults.Log()[len(w.Ops())-1]; !last.At.Equal(began.Add(20 * time.Second)) {
			t.Errorf("the last look was %v after the start, want one at the end", last.At.Sub(began))
		}
		mustRelease(t, holder)
	})
}

func TestWaitingEndsWithTheCauseOfItsContext(t *testing.T) {
	inBubble(t, func(t *testing.T, w *world) {
		holder := w.steal("b", 0)
		why := errors.New("closing time")
		ctx, cancel := context.WithCancelCause(t.Context())
		go func() {
			bubble.Sleep(7 * time.Second)
			cancel(why)
		}()
		began := time.Now()
		if _, err := Acquire(ctx, NewBlob(w.Blob("b")), nil); !errors.Is(err, why) || time.Since(began) != 7*time.Second {
			t.Errorf("err = %v after %v, want the context's cause after 7 s", err, time.Since(began))
		}
		mustRelease(t, holder)
	})
}

// A waiter that knows that the lease exists rides out an outage. One that has never received a response does not wait for
// ever.
func TestAWaiterSurvivesAnOutageThatANewCallDoesNot(t *testing.T) {
	inBubble(t, func(t *testing.T, w *world) {
		down := aztest.Fault{Kind: aztest.Refuse}
		w.Faults.SetFaults(down)
		if _, err := Acquire(t.Context(), NewBlob(w.Blob("b")), nil); err == nil || errors.Is(err, ErrHeld) {
			t.Errorf("err = %v, want the refusal", err)
		}
		if got := len(w.Ops()); got != 6 {
			t.Errorf("%d tries, want 6", got)
		}
		holder := w.steal("b", 0)
		w.Faults.SetFaults()
		go func() {
			bubble.Sleep(5 * time.Second)
			w.Faults.SetFaults(down)
			bubble.Sleep(10 * time.Minute)
			mustRelease(t, holder)
			w.Faults.SetFaults()
		}()
		mustRelease(t, acquired(t, w, nil))
	})
}

func TestAcquireDoesNotWaitForAMissingBlob(t *testing.T) {
	inBubble(t, func(t *testing.T, w *world) {
		_, err := Acquire(t.Context(), NewBlob(w.Blob("missing")), nil)
		if !errors.Is(err, ErrNotFound) || codeOf(err) != "BlobNotFound" || !strings.Contains(err.Error(), "box/missing") {
			t.Errorf("err = %v", err)
		}
		w.WantOps("acquire")
	})
}

// A 403 says nothing about a lease that is held, but it ends an acquisition.
func TestTheFirst403IsFinal(t *testing.T) {
	inBubble(t, func(t *testing.T, w *world) {
		w.Faults.SetFaults(aztest.Fault{Kind: aztest.Answer, Status: 403, Code: "AuthorizationPermissionMismatch"})
		if _, err := Acquire(t.Context(), NewBlob(w.Blob("b")), nil); codeOf(err) != "AuthorizationPermissionMismatch" {
			t.Errorf("err = %v", err)
		}
		w.WantOps("acquire")
	})
}

func TestAnAcquireWhoseResponseIsLostIsRepeatedWithTheSameID(t *testing.T) {
	for _, kind := range []aztest.FaultKind{aztest.LoseAnswer, aztest.FailAfterCommit, aztest.AnswerTwice, aztest.LoseRequest, aztest.Throttle} {
		t.Run(string(kind), func(t *testing.T) {
			inBubble(t, func(t *testing.T, w *world) {
				w.Faults.SetFaults(aztest.Fault{Kind: kind, Count: 1})
				l, err := TryAcquire(t.Context(), NewBlob(w.Blob("b")), nil)
				if err != nil {
					t.Fatal(err)
				}
				for _, c := range w.Witness.Seen() {
					if c.Status != 201 || c.Lease != l.ID() {
						t.Errorf("carried out %+v, want acquisitions of %s only", c, l.ID())
					}
				}
				mustRelease(t, l)
				if w.State("b") != lease.Available {
					t.Errorf("state %v", w.State("b"))
				}
			})
		})
	}
}

// The time of a grant counts from the try that succeeded: a lease acquired by the second try lasts from there.
func TestTheTimeCountsFromTheTryThatSucceeded(t *testing.T) {
	inBubble(t, func(t *testing.T, w *world) {
		w.Faults.SetFaults(
			aztest.Fault{Kind: aztest.Hang, Match: aztest.Op("Acquire Blob Lease"), Count: 1},
			aztest.Fault{Kind: aztest.Hang, Match: aztest.Op("Renew Blob Lease")})
		l := acquired(t, w, nil)
		log := w.Faults.Log()
		sent := log[len(log)-1].At
		<-l.Context().Done()
		if got := time.Since(sent); got != 20*time.Second {
			t.Errorf("stopped %v after the acquire that succeeded was sent, want 20 s", got)
		}
		_ = l.Release(t.Context())
	})
}

// Akka refuses a grant that took more than half of its time to arrive; too little would be left of it.
func TestAGrantThatTookHalfTheDurationIsRepeated(t *testing.T) {
	inBubble(t, func(t *testing.T, w *world) {
		var jump time.Duration
		first := true
		w.Witness.On(func(c pesstest.Carried) {
			if c.Op == "acquire" && first {
				first = false
				jump = 16 * time.Second // the machine stands still while the answer is on its way
			}
		})
		l := acquired(t, w, &AcquireOptions{clockJump: func() time.Duration { return jump }})
		w.WantOps("acquire", "acquire")
		mustRelease(t, l)
	})
}

func TestAnInfiniteLeaseLastsAndItsLossIsNoticed(t *testing.T) {
	inBubble(t, func(t *testing.T, w *world) {
		l := acquired(t, w, &AcquireOptions{Duration: Infinite})
		if seen := w.Look("b"); seen.Term != lease.InfiniteTerm {
			t.Errorf("seen %+v, want an infinite lease", seen)
		}
		w.Faults.SetFaults(aztest.Fault{Kind: aztest.Refuse})
		bubble.Sleep(time.Hour)
		if l.Context().Err() != nil || l.Guard(t.Context()) != nil {
			t.Errorf("ended by an outage: %v", context.Cause(l.Context()))
		}
		w.Faults.SetFaults()
		if _, err := Break(t.Context(), NewBlob(w.Service.BlockBlob("box", "b")), &BreakOptions{Now: true}); err != nil {
			t.Fatal(err)
		}
		began := time.Now()
		<-l.Context().Done()
		if took := time.Since(began); took > 10*time.Second {
			t.Errorf("the loss was found after %v, want within the time between two renewals", took)
		}
		mustLost(t, context.Cause(l.Context()), Broken)
		mustLost(t, l.Release(t.Context()), Broken)
	})
}

func TestContainersAreLeasedLikeBlobs(t *testing.T) {
	inBubble(t, func(t *testing.T, w *world) {
		l, err := Acquire(t.Context(), NewContainer(w.Container()), nil)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := w.Service.Container("box").Delete(t.Context(), nil); codeOf(err) != "LeaseIdMissing" {
			t.Errorf("a leased container was deleted: %v", err)
		}
		if err := l.Verify(t.Context()); err != nil {
			t.Error(err)
		}
		bubble.Sleep(time.Minute)
		if err := l.Renew(t.Context()); err != nil {
			t.Error(err)
		}
		if _, err := TryAcquire(t.Context(), NewContainer(w.Container()), nil); !errors.Is(err, ErrHeld) || !strings.HasPrefix(err.Error(), "box: held") {
			t.Errorf("err = %v", err)
		}
		mustRelease(t, l)
		if seen, err := Look(t.Context(), NewContainer(w.Container()), nil); err != nil || !seen.State.Free() {
			t.Errorf("%+v, %v", seen, err)
		}
	})
}

func TestDoReleasesHoweverTheWorkEnds(t *testing.T) {
	inBubble(t, func(t *testing.T, w *world) {
		mine := errors.New("my own error")
		if err := Do(t.Context(), NewBlob(w.Blob("b")), nil, func(context.Context, *Lease) error { return mine }); err != mine {
			t.Errorf("err = %v, want the work's own", err)
		}
		if err := Do(t.Context(), NewBlob(w.Blob("b")), nil, func(ctx context.Context, l *Lease) error { return l.Guard(ctx) }); err != nil {
			t.Error(err)
		}
		func() {
			defer func() { _ = recover() }()
			_ = Do(t.Context(), NewBlob(w.Blob("b")), nil, func(context.Context, *Lease) error { panic("work") })
		}()
		if w.State("b") != lease.Available {
			t.Errorf("state %v", w.State("b"))
		}
		w.WantOps("acquire", "release", "acquire", "release", "acquire", "release")
	})
}

// A lease that was lost must not hide what the work said, and success under a lost lease is no success.
func TestDoReportsALossTogetherWithTheWorksError(t *testing.T) {
	mine := errors.New("my own error")
	for _, own := range []error{nil, mine} {
		inBubble(t, func(t *testing.T, w *world) {
			err := Do(t.Context(), NewBlob(w.Blob("b")), nil, func(ctx context.Context, l *Lease) error {
				if _, err := Break(t.Context(), NewBlob(w.Service.BlockBlob("box", "b")), &BreakOptions{Now: true}); err != nil {
					t.Fatal(err)
				}
				<-ctx.Done()
				return own
			})
			mustLost(t, err, Broken)
			if own != nil && !errors.Is(err, own) {
				t.Errorf("err = %v, want the work's own too", err)
			}
		})
	}
}

// A release that the service never confirms is the lease's matter, not the work's.
func TestDoSucceedsIfOnlyTheReleaseIsUnknown(t *testing.T) {
	inBubble(t, func(t *testing.T, w *world) {
		w.Faults.SetFaults(aztest.Fault{Kind: aztest.Hang, Match: aztest.Op("Release Blob Lease")})
		var seen events
		err := Do(t.Context(), NewBlob(w.Blob("b")), &AcquireOptions{Hooks: seen.hooks()}, func(context.Context, *Lease) error { return nil })
		if err != nil {
			t.Error(err)
		}
		if last := seen.all[len(seen.all)-1]; last.Kind != observe.Released || !errors.Is(last.Err, ErrOutcomeUnknown) {
			t.Errorf("last event %+v, want a release with an unknown outcome", last)
		}
	})
}

func TestHooksReportTheEventsOfALease(t *testing.T) {
	inBubble(t, func(t *testing.T, w *world) {
		var seen events
		var spans pesstest.Spans
		hooks := seen.hooks()
		hooks.Span = spans.Span
		holder := w.steal("b", 15*time.Second)
		go func() { bubble.Sleep(1500 * time.Millisecond); mustRelease(t, holder) }()
		l := acquired(t, w, &AcquireOptions{Hooks: hooks, Poll: pollEvery(time.Second)})
		w.Faults.SetFaults(aztest.Fault{Kind: aztest.Throttle, Count: 1})
		bubble.Sleep(15 * time.Second)
		mustRelease(t, l)
		if got, want := seen.kinds(), []observe.Kind{observe.Waiting, observe.Acquired, observe.RenewFailed, observe.Renewed, observe.Released}; !slices.Equal(got, want) {
			t.Errorf("events %v, want %v", got, want)
		}
		if diff := spans.Want("pessimistic.Acquire box/b", " Acquire Lease box/b: LeaseAlreadyPresent", " Get Blob Properties box/b",
			" Get Blob Properties box/b", " Acquire Lease box/b",
			"pessimistic.Renew box/b: ServerBusy", " Renew Lease box/b: ServerBusy", "pessimistic.Renew box/b", " Renew Lease box/b",
			"pessimistic.Release box/b", " Release Lease box/b"); diff != "" {
			t.Error(diff)
		}
		for _, e := range seen.all {
			if e.Resource != "box/b" || e.At.IsZero() || strings.Contains(fmt.Sprintf("%+v", e), l.ID()) {
				t.Errorf("event %+v", e)
			}
		}
	})
}
