package pessimistic

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"sync/atomic"
	"testing"
	"time"

	"github.com/azconc/azconc/pessimistic/internal/pesstest"
	"github.com/azconc/azconc/pkg/aztest"
	"github.com/azconc/azconc/pkg/aztest/bubble"
	"github.com/azconc/azconc/pkg/lease"
)

var releases = aztest.Op("Release Blob Lease", "Release Container Lease")

func TestAReleaseWhoseResponseIsLostSucceeds(t *testing.T) {
	for _, kind := range []aztest.FaultKind{aztest.LoseAnswer, aztest.FailAfterCommit, aztest.LoseRequest, aztest.Throttle, aztest.Hang, aztest.Refuse} {
		t.Run(string(kind), func(t *testing.T) {
			inBubble(t, func(t *testing.T, w *world) {
				l := acquired(t, w, nil)
				w.Faults.SetFaults(aztest.Fault{Kind: kind, Match: releases, Count: 1})
				mustRelease(t, l)
				w.WantOps("acquire", "release", "release")
				if w.State("b") != lease.Available {
					t.Errorf("state %v", w.State("b"))
				}
			})
		})
	}
}

func TestAReleaseThatIsNeverConfirmedIsUnknown(t *testing.T) {
	inBubble(t, func(t *testing.T, w *world) {
		l := acquired(t, w, nil)
		w.Faults.SetFaults(aztest.Fault{Kind: aztest.LoseRequest, Match: releases})
		began := time.Now()
		err := l.Release(t.Context())
		if took := time.Since(began); took < 9*time.Second || took > 10*time.Second {
			t.Errorf("it gave up after %v", took)
		}
		if _, ok := errors.AsType[*UnknownError](err); !ok || !errors.Is(err, ErrOutcomeUnknown) || errors.Is(err, ErrLost) {
			t.Errorf("err = %v", err)
		}
		if again := l.Release(t.Context()); again != err {
			t.Errorf("a second release: %v", again)
		}
		// About one request a second.
		if n := len(w.Ops()); n < 10 || n > 40 {
			t.Errorf("%d requests were sent", n)
		}
	})
}

// A release works on when its context has ended (azure-webjobs-sdk#2962 released with the token of the function that had
// been cancelled), and takes no longer than the lease would.
func TestAReleaseDoesNotNeedItsContext(t *testing.T) {
	inBubble(t, func(t *testing.T, w *world) {
		ctx, cancel := context.WithCancel(t.Context())
		l, err := Acquire(ctx, NewBlob(w.Blob("b")), nil)
		if err != nil {
			t.Fatal(err)
		}
		cancel()
		if err := l.Release(ctx); err != nil || w.State("b") != lease.Available {
			t.Errorf("err = %v, state %v", err, w.State("b"))
		}
		l = acquired(t, w, &AcquireOptions{Duration: 15 * time.Second})
		w.Faults.SetFaults(aztest.Fault{Kind: aztest.Hang})
		bubble.Sleep(8 * time.Second)
		began := time.Now()
		if err := l.Release(ctx); !errors.Is(err, ErrOutcomeUnknown) || time.Since(began) > 7*time.Second {
			t.Errorf("err = %v after %v, want unknown within what was left of the lease, 7 s", err, time.Since(began))
		}
	})
}

// The keepers of a parent that was cancelled go on until Release: the work may still be stopping.
func TestTheLeaseIsRenewedUntilTheWorkHasStopped(t *testing.T) {
	inBubble(t, func(t *testing.T, w *world) {
		ctx, cancel := context.WithCancel(t.Context())
		l, err := Acquire(ctx, NewBlob(w.Blob("b")), nil)
		if err != nil {
			t.Fatal(err)
		}
		cancel()
		<-l.Context().Done()
		bubble.Sleep(5 * time.Minute) // of tidying up
		if !l.Valid() || w.State("b") != lease.Leased {
			t.Errorf("valid %v, state %v", l.Valid(), w.State("b"))
		}
		mustRelease(t, l)
	})
}

func TestReleasingALostLeaseReportsTheReason(t *testing.T) {
	for _, tt := range []struct {
		name   string
		happen func(t *testing.T, w *world, l *Lease)
		reason Reason
		ops    []string
	}{
		{"broken, and nobody has it", func(t *testing.T, w *world, _ *Lease) {
			if _, err := Break(t.Context(), NewBlob(w.Service.BlockBlob("box", "b")), &BreakOptions{Now: true}); err != nil {
				t.Fatal(err)
			}
			bubble.Sleep(11 * time.Second)
		}, Broken, []string{"acquire", "renew", "look", "release"}},
		{"taken before we knew", func(t *testing.T, w *world, _ *Lease) {
			if _, err := Break(t.Context(), NewBlob(w.Service.BlockBlob("box", "b")), &BreakOptions{Now: true}); err != nil {
				t.Fatal(err)
			}
			w.steal("b", 15*time.Second)
		}, Taken, []string{"acquire", "release"}},
		{"taken, and we knew", func(t *testing.T, w *world, _ *Lease) {
			if _, err := Break(t.Context(), NewBlob(w.Service.BlockBlob("box", "b")), &BreakOptions{Now: true}); err != nil {
				t.Fatal(err)
			}
			w.steal("b", 15*time.Second)
			bubble.Sleep(11 * time.Second)
		}, Taken, []string{"acquire", "renew"}},
		{"deleted", func(t *testing.T, w *world, l *Lease) {
			if _, err := w.Service.BlockBlob("box", "b").Delete(t.Context(), deleteWith(l.ID())); err != nil {
				t.Fatal(err)
			}
			bubble.Sleep(11 * time.Second)
		}, Deleted, []string{"acquire", "renew"}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			inBubble(t, func(t *testing.T, w *world) {
				l := acquired(t, w, nil)
				tt.happen(t, w, l)
				mustLost(t, l.Release(t.Context()), tt.reason)
				w.WantOps(tt.ops...)
				w.Witness.On(nil)
			})
		})
	}
}

// No request about a lease may follow its release: a renewal that was under way is waited for.
func TestTheRenewerIsJoinedBeforeTheRelease(t *testing.T) {
	inBubble(t, func(t *testing.T, w *world) {
		var released, renewed atomic.Bool
		// A line that holds a renewal for a while, even if nobody waits for its answer any more.
		slow := transport(func(r *http.Request) (*http.Response, error) {
			switch pesstest.Header(r.Header, "x-ms-lease-action") {
			case "renew":
				bubble.Sleep(3 * time.Second)
				renewed.Store(true)
				if released.Load() {
					t.Error("a renewal arrived after the release")
				}
			case "release":
				released.Store(true)
			}
			return w.Faults.Do(r)
		})
		l, err := Acquire(t.Context(), NewBlob(w.ContainerOver(slow).NewBlobClient("b")), nil)
		if err != nil {
			t.Fatal(err)
		}
		bubble.Sleep(11 * time.Second)
		_ = l.Release(t.Context())
		bubble.Sleep(5 * time.Second)
		if !renewed.Load() {
			t.Error("no renewal was under way")
		}
	})
}

// An acquire that is cancelled while request k is under way leaves nothing behind, wherever in it the end comes: before
// it arrives, after it was carried out, while waiting between two.
func TestACancelledAcquireLeavesNoLease(t *testing.T) {
	const steps = 140
	for _, d := range []time.Duration{30 * time.Second, Infinite} {
		t.Run(fmt.Sprint(d), func(t *testing.T) {
			leaks, cancelled := 0, 0
			for step := range steps {
				inBubble(t, func(t *testing.T, _ *world) {
					w := newWorldWith(t, &aztest.Options{Latency: func() time.Duration { return 0 }})
					slow := transport(func(r *http.Request) (*http.Response, error) {
						return latent(r, w.Faults, 200*time.Millisecond)
					})
					w.Faults.SetFaults(aztest.Fault{Kind: aztest.LoseAnswer, Count: 1}, aztest.Fault{Kind: aztest.Throttle, Count: 1})
					holder := w.steal("b", 15*time.Second)
					go func() { bubble.Sleep(2 * time.Second); _ = holder.Release(context.Background()) }()
					ctx, cancel := context.WithTimeout(t.Context(), time.Duration(step)*50*time.Millisecond)
					defer cancel()
					l, err := Acquire(ctx, NewBlob(w.ContainerOver(slow).NewBlobClient("b")), &AcquireOptions{Duration: d, Poll: pollEvery(400 * time.Millisecond)})
					if err == nil {
						mustRelease(t, l)
					} else {
						cancelled++
					}
					bubble.Sleep(3 * time.Second)
					if w.State("b") != lease.Available {
						leaks++
					}
				})
			}
			if leaks > 0 || cancelled < 40 || cancelled == steps {
				t.Errorf("%d leaks, %d of %d cancelled", leaks, cancelled, steps)
			}
		})
	}
}

// latent is a line with a latency, half of it on each way.
func latent(r *http.Request, next interface {
	Do(*http.Request) (*http.Response, error)
}, d time.Duration) (*http.Response, error) {
	pause := func() error {
		select {
		case <-time.After(d / 2):
			return nil
		case <-r.Context().Done():
			return r.Context().Err()
		}
	}
	if err := pause(); err != nil {
		return nil, err
	}
	resp, err := next.Do(r)
	if err != nil {
		return nil, err
	}
	if err := pause(); err != nil {
		return nil, err
	}
	return resp, nil
}
