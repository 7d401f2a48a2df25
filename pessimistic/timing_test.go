package pessimistic

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net/http"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/azconc/azconc/pessimistic/internal/pesstest"
	"github.com/azconc/azconc/pkg/aztest"
	"github.com/azconc/azconc/pkg/aztest/bubble"
)

// A trial holds a lease for ten fake minutes while things go wrong, and judges when the context of the work ended. The judge
// has two rules, from the two sides:
//
//   - late: the service could have granted the lease to another client while the work still went on. The witness knows
//     until when the lease lasted, because it saw what the service carried out; a thief tries as well.
//   - early: the work was stopped by a deadline that does not follow from the last request that was answered with
//     success. It must be that request's sending plus two thirds of the duration, to the nanosecond.
type trial struct {
	name     string
	duration time.Duration                 // defaults to 30 s
	faults   []aztest.Fault                // in force after the acquisition
	during   func(t *testing.T, tr *trial) // runs concurrently with the work
	answer   time.Duration                 // how long answers of lease operations take after they were carried out
	survives bool                          // the context must not end
	reason   Reason                        // if it is, why; 0 is any
	excused  time.Duration                 // by how much the work may be late: only for breaks without grace and deletions

	w        *world
	lease    *Lease
	mu       sync.Mutex
	machine  suspended
	answered []answered
}

// answered is a request that acquired or renewed the lease as far as the holder knows.
type answered struct{ sent, at time.Time }

// Do is what the holder's client talks to: it notes what the holder gets to know, and when.
func (tr *trial) Do(r *http.Request) (*http.Response, error) {
	sent := time.Now()
	resp, err := tr.w.Faults.Do(r)
	action := pesstest.Header(r.Header, "x-ms-lease-action")
	if err == nil && resp.StatusCode < 300 && (action == "acquire" || action == "renew") {
		tr.mu.Lock()
		defer tr.mu.Unlock()
		tr.answered = append(tr.answered, answered{sent, time.Now()})
	}
	return resp, err
}

const trialLength = 10 * time.Minute

// run returns what the judge found.
func (tr *trial) run(t *testing.T) (findings []string) {
	t.Helper()
	if tr.duration == 0 {
		tr.duration = 30 * time.Second
	}
	synctest.Test(t, func(t *testing.T) { findings = tr.inBubble(t) })
	return findings
}

func (tr *trial) inBubble(t *testing.T) (findings []string) {
	var mu sync.Mutex
	found := func(format string, args ...any) {
		mu.Lock()
		defer mu.Unlock()
		findings = append(findings, fmt.Sprintf(format, args...))
	}
	tr.w, tr.answered = newWorld(t), nil
	var until time.Time // when the lease ends at the service
	tr.w.Witness.On(func(c pesstest.Carried) {
		if c.Status < 300 && (c.Op == "acquire" || c.Op == "renew") {
			mu.Lock()
			if end := time.Now().Add(tr.duration); end.After(until) {
				until = end
			}
			mu.Unlock()
			bubble.Sleep(tr.answer)
		}
	})
	l, err := Acquire(t.Context(), NewBlob(tr.w.ContainerOver(tr).NewBlobClient("b")), &AcquireOptions{Duration: tr.duration, clockJump: tr.machine.clockJump})
	if err != nil {
		t.Fatal(err)
	}
	tr.lease = l
	tr.w.Faults.SetFaults(tr.faults...)
	began := time.Now()
	over := make(chan struct{})
	var wg sync.WaitGroup
	var ended time.Time // when the context of the work ended
	wg.Go(func() {
		select {
		case <-l.Context().Done():
			ended = time.Now()
			mu.Lock()
			late := ended.Sub(until)
			mu.Unlock()
			if late >= 0 && late >= tr.excused {
				found("late: the work was stopped %v after the service could have given the lease away", late)
			}
		case <-over:
		}
	})
	wg.Go(func() {
		tr.steal(over, found, func() time.Duration {
			mu.Lock()
			defer mu.Unlock()
			return time.Until(until)
		})
	})
	if tr.during != nil {
		wg.Go(func() { tr.during(t, tr) })
	}
	bubble.Sleep(trialLength)
	close(over)
	wg.Wait()
	tr.judgeEnd(began, ended, found)
	_ = l.Release(context.Background())
	return findings
}

// steal tries to get the lease every two seconds, and at the very moment at which it runs out. That the thief gets it is
// no crime of the holder's; that the work still goes on then is.
func (tr *trial) steal(over <-chan struct{}, found func(string, ...any), left func() time.Duration) {
	for {
		pause := 2 * time.Second
		if l := left(); l > 0 {
			pause = min(pause, l)
		}
		select {
		case <-over:
			return
		case <-time.After(pause):
		}
		thief, err := TryAcquire(context.Background(), NewBlob(tr.w.Service.BlockBlob("box", "b")), &AcquireOptions{Duration: 15 * time.Second})
		if err != nil {
			continue
		}
		stolen := time.Now()
		if tr.lease.Context().Err() == nil {
			if tr.excused == 0 {
				found("late: a thief got the lease while the work went on")
			}
			select {
			case <-tr.lease.Context().Done():
			case <-over:
			}
			if after := time.Since(stolen); after > tr.excused {
				found("late: the work went on for %v after a thief had got the lease", after)
			}
		}
		_ = thief.Release(context.Background())
		return
	}
}

func (tr *trial) judgeEnd(began, ended time.Time, found func(string, ...any)) {
	if ended.IsZero() {
		if !tr.survives {
			found("the work was never stopped")
		}
		return
	}
	lost, ok := errors.AsType[*LostError](context.Cause(tr.lease.Context()))
	if !ok {
		found("the cause is %v", context.Cause(tr.lease.Context()))
		return
	}
	if tr.survives {
		found("early: the work was stopped after %v: %v", ended.Sub(began), lost)
		return
	}
	if tr.reason != 0 && lost.Reason != tr.reason {
		found("the reason is %v, want %v", lost.Reason, tr.reason)
	}
	if lost.Reason != Stopped && lost.Reason != Unhealthy {
		return
	}
	var sent time.Time
	for _, a := range tr.answered {
		if a.at.Before(ended) {
			sent = a.sent
		}
	}
	if want := tr.duration * 2 / 3; ended.Sub(sent) != want {
		found("early or late: stopped %v after the last success was sent, want %v", ended.Sub(sent), want)
	}
}

var renewals = aztest.Op("Renew Blob Lease")

// broken makes another client break the lease after a while.
func broken(after time.Duration, opts *BreakOptions) func(*testing.T, *trial) {
	return func(t *testing.T, tr *trial) {
		bubble.Sleep(after)
		if _, err := Break(context.Background(), NewBlob(tr.w.Service.BlockBlob("box", "b")), opts); err != nil {
			t.Error(err)
		}
	}
}

// spells makes something go wrong for a while, again and again.
func spells(fault aztest.Fault, lasting, every time.Duration) func(*testing.T, *trial) {
	return func(_ *testing.T, tr *trial) {
		for began := time.Now(); time.Since(began) < trialLength-2*every; {
			bubble.Sleep(every - lasting)
			tr.w.Faults.SetFaults(fault)
			bubble.Sleep(lasting)
			tr.w.Faults.SetFaults()
		}
	}
}

func trials() []*trial {
	forbidden := aztest.Fault{Kind: aztest.Answer, Status: 403, Code: "AuthenticationFailed"}
	return []*trial{
		{name: "nothing goes wrong", survives: true},
		{name: "renewals hang for ever", faults: []aztest.Fault{{Kind: aztest.Hang, Match: renewals}}, reason: Stopped},
		{name: "renewals hang from the fifth on", faults: []aztest.Fault{{Kind: aztest.Hang, Match: renewals, Skip: 4}}, reason: Stopped},
		{name: "renewals of 15 s hang", duration: 15 * time.Second, faults: []aztest.Fault{{Kind: aztest.Hang, Match: renewals, Skip: 3}}, reason: Stopped},
		{name: "renewals of 60 s hang", duration: 60 * time.Second, faults: []aztest.Fault{{Kind: aztest.Hang, Match: renewals, Skip: 3}}, reason: Stopped},
		{name: "renewals hang now and then", during: spells(aztest.Fault{Kind: aztest.Hang}, 4*time.Second, 15*time.Second), survives: true},
		{name: "answers are slow, then none", answer: 4 * time.Second, faults: []aztest.Fault{{Kind: aztest.Hang, Match: renewals, Skip: 5}}, reason: Stopped},
		{name: "answers are slow and come", answer: 4900 * time.Millisecond, survives: true},
		{name: "keys are changed for 8 s", during: spells(forbidden, 8*time.Second, 30*time.Second), survives: true},
		{name: "keys are changed for good", faults: []aztest.Fault{forbidden}, reason: Stopped},
		{name: "busy for a while, with a wish", during: spells(aztest.Fault{Kind: aztest.Throttle, RetryAfter: 3 * time.Second}, 8*time.Second, 30*time.Second), survives: true},
		{name: "busy for good", faults: []aztest.Fault{{Kind: aztest.Throttle, RetryAfter: time.Minute}}, reason: Stopped},
		{name: "every other answer is lost", faults: []aztest.Fault{{Kind: aztest.LoseAnswer, Match: renewals, Probability: 0.5}}, survives: true},
		{name: "one answer is lost, then the line is cut", faults: []aztest.Fault{
			{Kind: aztest.LoseAnswer, Match: renewals, Count: 1}, {Kind: aztest.Hang, Match: renewals, Skip: 1}}, reason: Stopped},
		{name: "all answers are lost", faults: []aztest.Fault{{Kind: aztest.LoseAnswer, Match: renewals}}, reason: Stopped},
		{name: "renewals arrive much later", faults: []aztest.Fault{{Kind: aztest.DelayCommit, Match: renewals, Delay: 25 * time.Second, Probability: 0.9}}},
		{name: "each renewal is carried out twice", faults: []aztest.Fault{{Kind: aztest.AnswerTwice, Match: renewals}}, survives: true},
		{name: "unreachable for 8 s", during: spells(aztest.Fault{Kind: aztest.Refuse}, 8*time.Second, 30*time.Second), survives: true},
		{name: "unreachable for good", faults: []aztest.Fault{{Kind: aztest.Refuse, Skip: 7}}, reason: Stopped},
		{name: "broken with a grace", during: broken(101*time.Second, &BreakOptions{Grace: 25 * time.Second}), reason: Broken},
		{name: "broken in its natural time", during: broken(109*time.Second, nil), reason: Broken},
		{name: "broken at once", during: broken(101*time.Second, &BreakOptions{Now: true}), excused: 10 * time.Second},
		{name: "deleted", during: func(t *testing.T, tr *trial) {
			bubble.Sleep(101 * time.Second)
			if _, err := tr.w.Service.BlockBlob("box", "b").Delete(context.Background(), deleteWith(tr.lease.ID())); err != nil {
				t.Error(err)
			}
		}, reason: Deleted, excused: 10 * time.Second},
		{name: "the container is deleted", during: func(t *testing.T, tr *trial) {
			bubble.Sleep(101 * time.Second)
			if _, err := tr.w.Service.Container("box").Delete(context.Background(), nil); err != nil {
				t.Error(err)
			}
		}, reason: Deleted, excused: 10 * time.Second},
		{name: "stands still for 5 s", during: func(_ *testing.T, tr *trial) {
			bubble.Sleep(101 * time.Second)
			tr.machine.stand(5 * time.Second)
		}, survives: true},
	}
}

func TestTheWorkStopsBeforeTheLeaseCanBeAnotherHoldersAndNotEarlierThanNeeded(t *testing.T) {
	for _, tr := range trials() {
		t.Run(tr.name, func(t *testing.T) {
			for _, finding := range tr.run(t) {
				t.Error(finding)
			}
		})
	}
}

// mixture is faults at random, and at last a line that is cut: what the judge wants is the same.
func mixture(seed uint64) *trial {
	rng := rand.New(rand.NewPCG(seed, 11))
	kinds := []aztest.FaultKind{aztest.Hang, aztest.LoseAnswer, aztest.LoseRequest, aztest.Throttle, aztest.Refuse, aztest.FailAfterCommit, aztest.Slow, aztest.DelayCommit}
	tr := &trial{
		name:     fmt.Sprint("seed ", seed),
		duration: []time.Duration{15 * time.Second, 30 * time.Second, 60 * time.Second}[rng.IntN(3)],
		answer:   time.Duration(rng.IntN(2000)) * time.Millisecond,
	}
	share := 0.1 + 0.4*rng.Float64()
	for _, i := range rng.Perm(len(kinds))[:3] {
		tr.faults = append(tr.faults, aztest.Fault{Kind: kinds[i], Probability: share / 3, Delay: time.Duration(rng.IntN(30_000)) * time.Millisecond, RetryAfter: 2 * time.Second})
	}
	tr.during = func(_ *testing.T, tr *trial) {
		bubble.Sleep(trialLength * 3 / 4)
		tr.w.Faults.SetFaults(aztest.Fault{Kind: kinds[rng.IntN(2)], Match: renewals}) // nothing gets through any more
	}
	return tr
}

// With slow answers, a time that counts from the answer is not only inexact but dangerous: the work goes on after the
// lease could be acquired by another client.
func TestTheTimeCountsFromTheRequest(t *testing.T) {
	tr := &trial{
		answer: 14900 * time.Millisecond, // just within what an acquire may take
		faults: []aztest.Fault{{Kind: aztest.Hang, Match: renewals}},
	}
	for _, finding := range tr.run(t) {
		t.Error(finding)
	}
}

// TestAClockThatIsSetBackProlongsNoLease: nothing is renewed any more, and the work stops after 10 of 15 seconds whatever the wall clock
// shows.
func TestAClockThatIsSetBackProlongsNoLease(t *testing.T) {
	for _, jump := range []time.Duration{0, -time.Second, -time.Minute, -time.Hour} {
		inBubble(t, func(t *testing.T, w *world) {
			var shown atomic.Int64
			l := acquired(t, w, &AcquireOptions{Duration: 15 * time.Second, clockJump: func() time.Duration { return time.Duration(shown.Load()) }})
			began := time.Now()
			w.Faults.SetFaults(aztest.Fault{Kind: aztest.Refuse})
			bubble.Sleep(3 * time.Second)
			shown.Store(int64(jump))
			<-l.Context().Done()
			if took := time.Since(began); took > 10*time.Second {
				t.Errorf("set back by %v: the work went on for %v", jump, took)
			}
			if left, _, _ := l.Remaining(); left > 5*time.Second {
				t.Errorf("set back by %v: %v remain", jump, left)
			}
			w.Faults.SetFaults()
			_ = l.Release(t.Context())
		})
	}
}
