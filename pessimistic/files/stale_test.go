package files

import (
	"context"
	"errors"
	"slices"
	"testing"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/storage/azfile/file"
	filelease "github.com/Azure/azure-sdk-for-go/sdk/storage/azfile/lease"

	"github.com/azconc/azconc/pessimistic"
	"github.com/azconc/azconc/pkg/aztest"
	"github.com/azconc/azconc/pkg/aztest/bubble"
	"github.com/azconc/azconc/pkg/lease"
)

// orphan is a lease whose holder has died two minutes ago.
func orphan(t *testing.T, s *aztest.Service, f *file.Client) {
	t.Helper()
	l, err := pessimistic.Acquire(t.Context(), NewFile(f), nil)
	if err != nil {
		t.Fatal(err)
	}
	id := l.ID()
	released(t, l)
	take(t, f, id)
	bubble.Sleep(2 * time.Minute)
	s.Reset()
}

// take acquires a lease as another program does, without a heartbeat.
func take(t *testing.T, f *file.Client, id string) {
	t.Helper()
	h, err := filelease.NewFileClient(f, &filelease.FileClientOptions{LeaseID: &id})
	if err == nil {
		_, err = h.Acquire(context.Background(), nil)
	}
	if err != nil {
		t.Fatal(err)
	}
}

func TestBreakingAStaleLeaseLooksTwice(t *testing.T) {
	fileWorld(t, func(t *testing.T, s *aztest.Service, f *file.Client) {
		orphan(t, s, f)
		began := time.Now()
		if err := BreakStale(t.Context(), f, time.Minute, nil); err != nil || time.Since(began) != proofOfDeath {
			t.Errorf("%v after %v", err, time.Since(began))
		}
		if want := []string{lookAtFile, lookAtFile, "Break File Lease"}; !slices.Equal(fileOps(s), want) || leaseState(t, NewFile(f)) != lease.Broken {
			t.Errorf("sent %q, lease %v", fileOps(s), leaseState(t, NewFile(f)))
		}
	})
}

// The heartbeat that is seen first is that of the previous holder: the lease has just been acquired, and the first heartbeat is
// on its way.
func TestANewLeaseIsNotMistakenForThePreviousOne(t *testing.T) {
	fileWorld(t, func(t *testing.T, s *aztest.Service, f *file.Client) {
		l, err := pessimistic.Acquire(t.Context(), NewFile(f), nil)
		if err != nil {
			t.Fatal(err)
		}
		released(t, l)
		bubble.Sleep(time.Hour)
		s.SetFaults(aztest.Fault{Kind: aztest.Slow, Match: aztest.Op("Set File Metadata"), Count: 1, Delay: 10 * time.Second})
		acquired := make(chan *pessimistic.Lease)
		go func() {
			l, err := pessimistic.Acquire(t.Context(), NewFile(f), nil)
			if err != nil {
				t.Error(err)
			}
			acquired <- l
		}()
		bubble.Sleep(time.Second)
		if seen := leaseState(t, NewFile(f)); seen != lease.Leased {
			t.Fatal(seen)
		}
		if err := BreakStale(t.Context(), f, time.Minute, nil); !errors.Is(err, pessimistic.ErrHeld) {
			t.Errorf("%v", err)
		}
		released(t, <-acquired)
	})
}

func TestABreakWhoseRequestIsLostIsRepeated(t *testing.T) {
	for _, kind := range []aztest.FaultKind{aztest.LoseAnswer, aztest.FailAfterCommit, aztest.LoseRequest, aztest.AnswerTwice, aztest.Refuse} {
		fileWorld(t, func(t *testing.T, s *aztest.Service, f *file.Client) {
			orphan(t, s, f)
			s.SetFaults(aztest.Fault{Kind: kind, Match: aztest.Op("Break File Lease"), Count: 1})
			if err := BreakStale(t.Context(), f, time.Minute, nil); err != nil || leaseState(t, NewFile(f)) != lease.Broken {
				t.Errorf("%s: %v, lease %v", kind, err, leaseState(t, NewFile(f)))
			}
		})
	}
}

func TestABreakWhoseResponseIsLostIsNotRepeatedOnALaterHolder(t *testing.T) {
	fileWorld(t, func(t *testing.T, s *aztest.Service, f *file.Client) {
		orphan(t, s, f)
		s.SetFaults(aztest.Fault{Kind: aztest.LoseAnswer, Match: aztest.Op("Break File Lease"), Count: 1},
			// The look that follows is slow, and another client acquires the lease meanwhile.
			aztest.Fault{Kind: aztest.Throttle, Match: aztest.Op(lookAtFile), Skip: 2, Count: 1, RetryAfter: 3 * time.Second})
		acquired := make(chan *pessimistic.Lease, 1)
		time.AfterFunc(proofOfDeath+time.Second, func() {
			l, err := pessimistic.TryAcquire(context.Background(), NewFile(f), nil)
			if err != nil {
				t.Error(err)
			}
			acquired <- l
		})
		if err := BreakStale(t.Context(), f, time.Minute, nil); !errors.Is(err, pessimistic.ErrHeld) {
			t.Errorf("%v", err)
		}
		released(t, <-acquired)
	})
}

func TestABreakThatIsNeverAnsweredIsUnknown(t *testing.T) {
	fileWorld(t, func(t *testing.T, s *aztest.Service, f *file.Client) {
		orphan(t, s, f)
		s.SetFaults(aztest.Fault{Kind: aztest.LoseRequest, Match: aztest.Op("Break File Lease")})
		if err := BreakStale(t.Context(), f, time.Minute, nil); !errors.Is(err, pessimistic.ErrOutcomeUnknown) {
			t.Errorf("%v", err)
		}
		s.SetFaults()
		ctx, cancel := context.WithCancelCause(t.Context())
		cause := errors.New("enough")
		time.AfterFunc(time.Second, func() { cancel(cause) })
		if err := BreakStale(ctx, f, time.Minute, nil); !errors.Is(err, cause) || leaseState(t, NewFile(f)) != lease.Leased {
			t.Errorf("cancelled while waiting for a sign of life: %v", err)
		}
	})
}

func TestALeaseWithoutAHeartbeatIsNotStale(t *testing.T) {
	fileWorld(t, func(t *testing.T, s *aztest.Service, f *file.Client) {
		take(t, f, "6f1f1a1e-0000-4000-8000-000000000000")
		bubble.Sleep(24 * time.Hour)
		if err := BreakStale(t.Context(), f, time.Minute, nil); !errors.Is(err, pessimistic.ErrHeld) {
			t.Errorf("%v", err)
		}
		if err := BreakStale(t.Context(), s.File("box", "missing"), time.Minute, nil); !errors.Is(err, pessimistic.ErrNotFound) {
			t.Errorf("a file that is not there: %v", err)
		}
		if err := BreakStale(t.Context(), f, time.Second, nil); err == nil || errors.Is(err, pessimistic.ErrHeld) {
			t.Errorf("an age that the living reach: %v", err)
		}
	})
}
