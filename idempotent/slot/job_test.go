package slot

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore/policy"
	"github.com/Azure/azure-sdk-for-go/sdk/data/aztables"
	"github.com/Azure/azure-sdk-for-go/sdk/storage/azblob/container"
	"go.uber.org/goleak"

	"github.com/azconc/azconc/idempotent/once"
	"github.com/azconc/azconc/pessimistic"
	"github.com/azconc/azconc/pkg/aztest"
	"github.com/azconc/azconc/pkg/aztest/bubble"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// machine is a process of a replica. Once it is dead, none of its requests arrives.
type machine struct {
	policy.Transporter
	dead  atomic.Bool
	lease time.Duration // of the lock; 15 s if it is 0
	keys  once.Options
}

func (m *machine) Do(r *http.Request) (*http.Response, error) {
	if m.dead.Load() {
		return nil, errors.New("this machine is dead")
	}
	return m.Transporter.Do(r)
}

// job is the job of a process, whose clients send through the machine.
func (m *machine) job(t *testing.T, s *aztest.Service, name, expression string) *Job {
	t.Helper()
	o := s.ClientOptions()
	o.Transport = m
	key, err := container.NewSharedKeyCredential(aztest.Account, aztest.Key)
	if err != nil {
		t.Fatal(err)
	}
	c, err := container.NewClientWithSharedKeyCredential(s.Container("locks").URL(), key, &container.ClientOptions{ClientOptions: o})
	if err != nil {
		t.Fatal(err)
	}
	credential, err := aztables.NewSharedKeyCredential(aztest.Account, aztest.Key)
	if err != nil {
		t.Fatal(err)
	}
	table, err := aztables.NewClientWithSharedKey(s.TableURL()+"/results", credential, &aztables.ClientOptions{ClientOptions: o})
	if err != nil {
		t.Fatal(err)
	}
	locks, err := pessimistic.NewLocker(c, &pessimistic.LockerOptions{Duration: cmp.Or(m.lease, 15*time.Second), QuickFirst: true})
	if err != nil {
		t.Fatal(err)
	}
	keys, err := once.New(locks, table, &m.keys)
	if err != nil {
		t.Fatal(err)
	}
	return &Job{Keys: keys, Name: name, Schedule: parsed(t, expression, ""), Clock: ServiceClock(c)}
}

func start(t *testing.T) *aztest.Service {
	t.Helper()
	s := aztest.New(nil)
	if _, err := s.Container("locks").Create(t.Context(), nil); err != nil {
		t.Fatal(err)
	}
	return s
}

// register counts what happened to each slot.
type register struct {
	mu              sync.Mutex
	completed, runs map[time.Time]int
}

func (r *register) add(counts map[time.Time]int, due Slot) {
	r.mu.Lock()
	defer r.mu.Unlock()
	counts[due.At]++
}

// TestEachSlotCompletesOnce: three replicas start a job that is due every five minutes, each by a clock of its own that is up to 30
// seconds wrong, and up to two of them are killed at any point of the slot. Every one of 200 slots, 80 with -short, is completed, once.
func TestEachSlotCompletesOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const interval = 5 * time.Minute
		slots := 200
		if testing.Short() {
			slots = 80
		}
		s := start(t)
		rng := rand.New(rand.NewPCG(1, 2))
		reg := &register{completed: map[time.Time]int{}, runs: map[time.Time]int{}}
		begin := time.Now().Truncate(interval).Add(2 * interval)
		kills := 0
		var all sync.WaitGroup
		for n := range slots {
			at := begin.Add(time.Duration(n) * interval)
			survivor := rng.IntN(3)
			early := rng.IntN(4) == 0 // sometimes every clock is ahead
			for replica := range 3 {
				skew := time.Duration(rng.Int64N(int64(60*time.Second))) - 30*time.Second
				if early {
					skew = -max(skew, -skew)
				}
				killed := replica != survivor && rng.IntN(2) == 0
				after := time.Duration(rng.Int64N(int64(20 * time.Second)))
				work := time.Duration(rng.Int64N(int64(20 * time.Second)))
				if killed {
					kills++
				}
				all.Go(func() {
					bubble.Sleep(time.Until(at.Add(skew)))
					m := &machine{Transporter: s}
					ctx, cancel := context.WithCancel(context.Background())
					defer cancel()
					if killed {
						stop := time.AfterFunc(after, func() { m.dead.Store(true); cancel() })
						defer stop.Stop()
					}
					out, err := m.job(t, s, "report", "*/5 * * * *").Do(ctx, func(ctx context.Context, h *pessimistic.Hold, due Slot) ([]byte, error) {
						reg.add(reg.runs, due)
						timer := time.NewTimer(work)
						defer timer.Stop()
						select {
						case <-timer.C:
							return []byte(due.At.String()), nil
						case <-ctx.Done():
							return nil, context.Cause(ctx)
						}
					})
					switch {
					case err != nil && !m.dead.Load():
						t.Errorf("slot %v, replica %d: %v", at, replica, err)
					case err == nil && string(out.Value) != at.UTC().String():
						t.Errorf("slot %v, replica %d at %v: the result is that of %s", at, replica, skew, out.Value)
					case err == nil && !out.Replayed:
						reg.add(reg.completed, Slot{At: at.UTC()})
					}
				})
			}
		}
		all.Wait()
		again := 0
		for n := range slots {
			at := begin.Add(time.Duration(n) * interval).UTC()
			if reg.completed[at] != 1 {
				t.Errorf("slot %v was completed %d times, and run %d times", at, reg.completed[at], reg.runs[at])
			}
			again += reg.runs[at] - 1
		}
		if len(reg.runs) != slots || kills < slots/3 || again < slots/20 {
			t.Errorf("%d slots were run, %d replicas were killed, %d runs were taken over: the test tests too little", len(reg.runs), kills, again)
		}
	})
}

// TestASlotThatEndsIsReported: the process that works on it is still there when the next slot begins.
func TestASlotThatEndsIsReported(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := start(t)
		bubble.Sleep(time.Until(time.Now().Truncate(5 * time.Minute).Add(5*time.Minute + time.Second)))
		ends, ended := make(chan struct{}), make(chan error, 1)
		go func() {
			_, err := (&machine{Transporter: s}).job(t, s, "report", "*/5 * * * *").Do(t.Context(), func(context.Context, *pessimistic.Hold, Slot) ([]byte, error) { <-ends; return nil, nil })
			ended <- err
		}()
		bubble.Sleep(time.Second)
		began := time.Now()
		_, err := (&machine{Transporter: s}).job(t, s, "report", "*/5 * * * *").Do(t.Context(), func(context.Context, *pessimistic.Hold, Slot) ([]byte, error) { return nil, nil })
		if took := time.Since(began); !errors.Is(err, ErrEnded) || !errors.Is(err, pessimistic.ErrHeld) || took < 4*time.Minute || took > 5*time.Minute {
			t.Errorf("after %v: %v, want ErrEnded within the slot", took, err)
		}
		close(ends)
		if err := <-ended; err != nil {
			t.Error(err)
		}
	})
}

// TestMissedSlotsAreNamed: between the last slot with a result and the one that is due.
func TestMissedSlotsAreNamed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := start(t)
		j := (&machine{Transporter: s}).job(t, s, "report", "*/5 * * * *")
		run := func() Slot {
			t.Helper()
			var due Slot
			if _, err := j.Do(t.Context(), func(_ context.Context, _ *pessimistic.Hold, s Slot) ([]byte, error) { due = s; return nil, nil }); err != nil {
				t.Fatal(err)
			}
			return due
		}
		missed := func(due Slot, want string, requests int) {
			t.Helper()
			s.Reset()
			got, err := Missed(t.Context(), j.Keys, "report", j.Schedule, due)
			names := []string{}
			for _, m := range got {
				names = append(names, m.Key("report"))
			}
			if err != nil || fmt.Sprint(names) != want || s.Requests() != requests {
				t.Errorf("%v, %v in %d requests, want %s in %d", names, err, s.Requests(), want, requests)
			}
		}
		missed(run(), "[]", 2) // the first one
		bubble.Sleep(5 * time.Minute)
		missed(run(), "[]", 1)
		bubble.Sleep(15 * time.Minute)
		missed(run(), "[report@2000-01-01T00:15Z report@2000-01-01T00:10Z]", 2)
		bubble.Sleep(200 * 5 * time.Minute)
		due := run()
		if got, err := Missed(t.Context(), j.Keys, "report", j.Schedule, due); err != nil || len(got) != 199 {
			t.Errorf("%d slots were missed, %v, want 199", len(got), err)
		}
		bubble.Sleep(15 * time.Minute)
		j.Schedule = parsed(t, "*/3 * * * *", "")
		if got, err := Missed(t.Context(), j.Keys, "report", j.Schedule, run()); !errors.Is(err, ErrChanged) || !strings.Contains(err.Error(), `"*/5 * * * * UTC`) || got != nil {
			t.Errorf("%v, %v, want ErrChanged", got, err)
		}
	})
}

// TestSlotsOfAJobThatShareALockDoNotOverlap: a job that is longer than its period worked on two slots at a time.
func TestSlotsOfAJobThatShareALockDoNotOverlap(t *testing.T) {
	for _, share := range []bool{false, true} {
		synctest.Test(t, func(t *testing.T) {
			s := start(t)
			m := &machine{Transporter: s}
			if share {
				m.keys.Lock = JobOf
			}
			j := m.job(t, s, "report", "*/5 * * * *")
			var working, most, ran, ended atomic.Int64
			var all sync.WaitGroup
			for range 4 {
				all.Go(func() {
					_, err := j.Do(t.Context(), func(context.Context, *pessimistic.Hold, Slot) ([]byte, error) {
						most.Store(max(most.Load(), working.Add(1)))
						bubble.Sleep(7 * time.Minute)
						working.Add(-1)
						ran.Add(1)
						return nil, nil
					})
					switch {
					case errors.Is(err, ErrEnded):
						ended.Add(1)
					case err != nil:
						t.Error(err)
					}
				})
				bubble.Sleep(5 * time.Minute)
			}
			all.Wait()
			if share && (most.Load() != 1 || ran.Load() < 2 || ran.Load()+ended.Load() != 4) || !share && (most.Load() != 2 || ran.Load() != 4) {
				t.Errorf("a lock for all: %v: %d at a time, %d ran, %d ended", share, most.Load(), ran.Load(), ended.Load())
			}
		})
	}
}

// TestAFailingJobIsTriedAsOftenAsItsAttemptsSay: three replicas started it three times for each slot, and a fourth one a fourth time.
func TestAFailingJobIsTriedAsOftenAsItsAttemptsSay(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := start(t)
		m := &machine{Transporter: s}
		m.keys.Attempts = 2
		j := m.job(t, s, "report", "*/5 * * * *")
		runs := 0
		try := func() error {
			_, err := j.Do(t.Context(), func(context.Context, *pessimistic.Hold, Slot) ([]byte, error) { runs++; return nil, errBad })
			return err
		}
		for range 2 {
			if err := try(); !errors.Is(err, errBad) {
				t.Error(err)
			}
		}
		s.Reset()
		if err := try(); !errors.Is(err, once.ErrAttempts) || runs != 2 {
			t.Errorf("%v after %d runs", err, runs)
		}
		keys, err := j.Keys.List(t.Context())
		if err != nil || len(keys) != 1 || keys[0].Done {
			t.Errorf("%+v, %v: the attempts are no key", keys, err)
		}
		if forgotten, err := j.Keys.Forget(t.Context(), keys[0].Key); err != nil || forgotten {
			t.Errorf("%v, %v", forgotten, err)
		}
		if err := try(); !errors.Is(err, errBad) || runs != 3 {
			t.Errorf("after it was forgotten: %v, %d runs", err, runs)
		}
		bubble.Sleep(5 * time.Minute)
		if err := try(); !errors.Is(err, errBad) || runs != 4 {
			t.Errorf("the next slot: %v, %d runs", err, runs)
		}
	})
}

var errBad = errors.New("it cannot be done")

// TestARunOfASlotCostsTheDocumentedRequests: one more than once.Once.Do.
func TestARunOfASlotCostsTheDocumentedRequests(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := start(t)
		j := (&machine{Transporter: s}).job(t, s, "report", "*/5 * * * *")
		do := func(want int) {
			t.Helper()
			s.Reset()
			if _, err := j.Do(t.Context(), func(context.Context, *pessimistic.Hold, Slot) ([]byte, error) { return nil, nil }); err != nil || s.Requests() != want {
				t.Errorf("%v in %d requests, want %d: %v", err, s.Requests(), want, s.Log())
			}
		}
		do(10) // with the creation of the table
		do(2)
		bubble.Sleep(5 * time.Minute)
		do(9)
	})
}

// TestALostResponseAtAnyWriteOfASlotLosesNothing: whether the request was applied or not, the slot is completed, and its result is
// replayed. Each of the writes is met, and no more of them are sent than it takes to send one again.
func TestALostResponseAtAnyWriteOfASlotLosesNothing(t *testing.T) {
	for _, kind := range []aztest.FaultKind{aztest.LoseAnswer, aztest.LoseRequest} {
		for k := range 20 {
			met := true
			synctest.Test(t, func(t *testing.T) {
				s := start(t)
				wire := aztest.Inject(s, 1)
				wire.SetFaults(aztest.Fault{Kind: kind, Match: aztest.Writes, Skip: k, Count: 1})
				runs := 0
				out, err := (&machine{Transporter: wire}).job(t, s, "report", "*/5 * * * *").Do(t.Context(), func(context.Context, *pessimistic.Hold, Slot) ([]byte, error) { runs++; return []byte("x"), nil })
				if err != nil || string(out.Value) != "x" || out.Replayed || runs != 1 {
					t.Errorf("%s at write %d: %+v, %v after %d runs:\n%v", kind, k, out, err, runs, s.Log())
				}
				met = wire.Met()[kind] > 0
				again, err := (&machine{Transporter: s}).job(t, s, "report", "*/5 * * * *").Do(t.Context(), func(context.Context, *pessimistic.Hold, Slot) ([]byte, error) {
					runs++
					return nil, nil
				})
				if err != nil || !again.Replayed || string(again.Value) != "x" || runs != 1 {
					t.Errorf("%s at write %d: then %+v, %v after %d runs", kind, k, again, err, runs)
				}
			})
			if t.Failed() {
				return
			}
			if !met {
				if k != 6 {
					t.Errorf("%s: %d writes were met, want 6", kind, k)
				}
				break
			}
		}
	}
}
