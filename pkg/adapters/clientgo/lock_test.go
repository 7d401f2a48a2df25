package azclientgo

import (
	"bytes"
	"context"
	"fmt"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/client-go/tools/leaderelection"
	"k8s.io/client-go/tools/leaderelection/resourcelock"

	"github.com/azconc/azconc/pkg/aztest"
	"github.com/azconc/azconc/pkg/aztest/bubble"
)

func newLock(t *testing.T, s *aztest.Service, identity string) *Lock {
	t.Helper()
	l, err := New(s.BlockBlob("election", "leader"), identity, nil)
	if err != nil {
		t.Fatal(err)
	}
	return l
}

func held(by string) resourcelock.LeaderElectionRecord {
	return resourcelock.LeaderElectionRecord{HolderIdentity: by, LeaseDurationSeconds: 15}
}

// TestTheElectorGetsTheErrorsItLooksFor: it creates the record after NotFound only, and repeats a release after Conflict only.
func TestTheElectorGetsTheErrorsItLooksFor(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, s := t.Context(), aztest.New(nil)
		a, b := newLock(t, s, "a"), newLock(t, s, "b")
		if _, _, err := a.Get(ctx); !apierrors.IsNotFound(err) {
			t.Errorf("Get without a blob: %v", err)
		}
		if err := a.Update(ctx, held("a")); !apierrors.IsNotFound(err) {
			t.Errorf("Update without a blob: %v", err)
		}
		if err := a.Create(ctx, held("a")); err != nil {
			t.Fatal(err)
		}
		if err := b.Create(ctx, held("b")); !apierrors.IsAlreadyExists(err) {
			t.Errorf("a second Create: %v", err)
		}
		if err := b.Update(ctx, held("b")); !apierrors.IsConflict(err) {
			t.Errorf("Update without a Get: %v", err)
		}
		got, raw, err := b.Get(ctx)
		if err != nil || *got != held("a") {
			t.Errorf("Get: %+v, %v", got, err)
		}
		if err := a.Update(ctx, held("a")); err != nil { // the same record within the same second
			t.Error(err)
		}
		if err := b.Update(ctx, held("b")); !apierrors.IsConflict(err) {
			t.Errorf("Update after another: %v", err)
		}
		if _, again, err := b.Get(ctx); err != nil || bytes.Equal(raw, again) {
			t.Errorf("a renewal with the same content is not seen: %v", err)
		}
		if err := b.Update(ctx, held("b")); err != nil {
			t.Error(err)
		}
		if err := a.Update(ctx, held("a")); !apierrors.IsConflict(err) {
			t.Errorf("a renewal after a takeover: %v", err)
		}
		s.Reset()
		if err := b.Update(ctx, held("b")); err != nil || s.Requests() != 1 {
			t.Errorf("a renewal: %v, with %d requests", err, s.Requests())
		}
		s.SetFaults(aztest.Fault{Kind: aztest.LoseAnswer, Count: 1})
		if err := b.Update(ctx, held("b")); err != nil {
			t.Errorf("a renewal whose answer is lost: %v", err)
		}
		s.SetFaults(aztest.Fault{Kind: aztest.Hang})
		began := time.Now()
		if err := b.Update(ctx, held("b")); err == nil || time.Since(began) > DefaultTimeout+100*time.Millisecond {
			t.Errorf("a renewal that hangs: %v after %v", err, time.Since(began))
		}
		began = time.Now()
		ctx, cancel := context.WithTimeout(ctx, time.Second)
		defer cancel()
		if _, _, err := b.Get(ctx); err == nil || time.Since(began) > 1100*time.Millisecond {
			t.Errorf("a read that hangs: %v after %v", err, time.Since(began))
		}
	})
	if _, err := New(aztest.New(nil).BlockBlob("election", "leader"), "", nil); err == nil {
		t.Error("a Lock without an identity is accepted")
	}
}

// terms are the times at which each candidate led.
type terms struct {
	mu       sync.Mutex
	leads    map[string]bool
	leaders  []string
	overlaps int
}

func (e *terms) begin(name string) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if len(e.leads) > 0 && !e.leads[name] {
		e.overlaps++
	}
	e.leads[name] = true
	e.leaders = append(e.leaders, name)
}

func (e *terms) end(name string) {
	e.mu.Lock()
	defer e.mu.Unlock()
	delete(e.leads, name)
}

func (e *terms) number() int {
	e.mu.Lock()
	defer e.mu.Unlock()
	return len(e.leaders)
}

// run runs for the lead with the real elector, in client-go's usual times, and again whenever it stopped leading.
func (e *terms) run(ctx context.Context, t *testing.T, lock *Lock, release bool) {
	for ctx.Err() == nil {
		elector, err := leaderelection.NewLeaderElector(leaderelection.LeaderElectionConfig{
			Lock: lock, LeaseDuration: 15 * time.Second, RenewDeadline: 10 * time.Second, RetryPeriod: 2 * time.Second, ReleaseOnCancel: release,
			Callbacks: leaderelection.LeaderCallbacks{
				OnStartedLeading: func(ctx context.Context) {
					e.begin(lock.Identity())
					defer e.end(lock.Identity())
					<-ctx.Done()
				},
				OnStoppedLeading: func() {},
			},
		})
		if err != nil {
			t.Error(err)
			return
		}
		elector.Run(ctx)
	}
}

// TestTheRealElector: three candidates, of which the leader is stopped, with and without a release, while one answer in five is
// lost. The others are led by one of them at a time.
func TestTheRealElector(t *testing.T) {
	for _, release := range []bool{true, false} {
		t.Run(fmt.Sprintf("release %v", release), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := aztest.New(&aztest.Options{Seed: 7, Latency: func() time.Duration { return 20 * time.Millisecond }})
				s.SetFaults(aztest.Fault{Kind: aztest.LoseAnswer, Probability: 0.2})
				e := &terms{leads: map[string]bool{}}
				stop := map[string]context.CancelFunc{}
				var all sync.WaitGroup
				for _, name := range []string{"a", "b", "c"} {
					ctx, cancel := context.WithCancel(t.Context())
					stop[name] = cancel
					lock := newLock(t, s, name)
					all.Go(func() { e.run(ctx, t, lock, release) })
				}
				for n := 1; n <= 3; n++ {
					bubble.Sleep(10 * time.Minute)
					if e.number() != n {
						t.Fatalf("led by %v, want %d terms", e.leaders, n)
					}
					stop[e.leaders[n-1]]()
				}
				all.Wait()
				synctest.Wait()
				if e.overlaps != 0 {
					t.Errorf("%d terms began while another lasted: %v", e.overlaps, e.leaders)
				}
			})
		})
	}
}

// TestAnOutageEndsATermBeforeTheNextBegins: the service stops answering the leader, and after a while the others take over. The
// answers that it gets before that are slow, so that it learns late of its renewals.
func TestAnOutageEndsATermBeforeTheNextBegins(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := aztest.New(nil)
		cut := aztest.Inject(s, 1)
		e := &terms{leads: map[string]bool{}}
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		var all sync.WaitGroup
		all.Go(func() { e.run(ctx, t, behind(t, s, cut, "a"), false) })
		bubble.Sleep(time.Minute)
		all.Go(func() { e.run(ctx, t, newLock(t, s, "b"), false) })
		for range 20 {
			bubble.Sleep(time.Minute)
			cut.SetFaults(aztest.Fault{Kind: aztest.LoseAnswer, Count: 3}, aztest.Fault{Kind: aztest.Hang})
			bubble.Sleep(time.Minute)
			cut.SetFaults()
		}
		cancel()
		all.Wait()
		synctest.Wait()
		if e.overlaps != 0 || len(e.leaders) < 2 || e.leaders[0] != "a" || e.leaders[1] != "b" {
			t.Errorf("%d overlaps, led by %v", e.overlaps, e.leaders)
		}
	})
}
