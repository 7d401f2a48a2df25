package files

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore/policy"
	"github.com/Azure/azure-sdk-for-go/sdk/storage/azfile/file"
	"github.com/Azure/azure-sdk-for-go/sdk/storage/azfile/share"
	"go.uber.org/goleak"

	"github.com/azconc/azconc/pessimistic"
	"github.com/azconc/azconc/pessimistic/internal/locks"
	"github.com/azconc/azconc/pkg/azerr"
	"github.com/azconc/azconc/pkg/aztest"
	"github.com/azconc/azconc/pkg/aztest/bubble"
	"github.com/azconc/azconc/pkg/lease"
	"github.com/azconc/azconc/pkg/retry"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func released(t *testing.T, l *pessimistic.Lease) {
	t.Helper()
	if err := l.Release(context.Background()); err != nil {
		t.Errorf("release: %v", err)
	}
}

// pollEach polls at fixed intervals.
func pollEach(d time.Duration) retry.Backoff {
	return retry.Backoff{Base: d, Cap: d, Rand: func() float64 { return 0 }}
}

// fileWorld is a share "box" with a file "f" in it.
func fileWorld(t *testing.T, test func(t *testing.T, s *aztest.Service, f *file.Client)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		s := aztest.New(nil)
		f := s.File("box", "f")
		if _, err := f.Create(t.Context(), 3, nil); err != nil {
			t.Fatal(err)
		}
		s.Reset()
		test(t, s, f)
	})
}

func leaseState(t *testing.T, f pessimistic.Resource) lease.State {
	t.Helper()
	seen, err := pessimistic.Look(context.Background(), f, nil)
	if err != nil {
		t.Fatal(err)
	}
	return seen.State
}

func fileOps(s *aztest.Service) (ops []string) {
	for _, r := range s.Log() {
		ops = append(ops, r.Op)
	}
	return ops
}

var fileAcquire = []string{"Acquire File Lease", "Get File Properties", "Set File Metadata"}

func TestAFilesLeaseIsInfiniteAndItsHolderSendsHeartbeats(t *testing.T) {
	fileWorld(t, func(t *testing.T, s *aztest.Service, f *file.Client) {
		l, err := pessimistic.Acquire(t.Context(), NewFile(f), nil)
		if err != nil {
			t.Fatal(err)
		}
		bubble.Sleep(25 * time.Second)
		released(t, l)
		beat := fileAcquire[1:]
		want := slices.Concat(fileAcquire, beat, beat, []string{"Release File Lease"})
		if got := fileOps(s); !slices.Equal(got, want) || l.Stats().Requests != len(want) {
			t.Errorf("sent %q, counted %d, want %q", got, l.Stats().Requests, want)
		}
		seen, err := pessimistic.Look(t.Context(), NewFile(f), nil)
		if err != nil || seen.State != lease.Available {
			t.Fatalf("%v, %v", seen.State, err)
		}
		since, _ := time.Parse(time.RFC3339, seen.Metadata[locks.KeySince])
		last, _ := time.Parse(time.RFC3339, seen.Metadata[locks.KeyHeartbeat])
		if last.Sub(since) != 20*time.Second || LeaseInfoOf(seen).Owner != locks.OwnName() {
			t.Errorf("metadata %v, want an owner, and a heartbeat 20s after the beginning", seen.Metadata)
		}
	})
}

func TestAFilesLeaseRefusesOtherDurations(t *testing.T) {
	fileWorld(t, func(t *testing.T, s *aztest.Service, f *file.Client) {
		if _, err := pessimistic.Acquire(t.Context(), NewFile(f), &pessimistic.AcquireOptions{Duration: 30 * time.Second}); err == nil || s.Requests() != 0 {
			t.Errorf("err = %v after %d requests", err, s.Requests())
		}
		if _, err := pessimistic.Break(t.Context(), NewFile(f), &pessimistic.BreakOptions{Grace: time.Second}); err == nil || s.Requests() != 0 {
			t.Errorf("break with grace: %v after %d requests", err, s.Requests())
		}
	})
}

func TestALostResponseDuringTheAcquisitionOfAFileIsRepaired(t *testing.T) {
	for _, op := range append(slices.Clone(fileAcquire), "Release File Lease") {
		fileWorld(t, func(t *testing.T, s *aztest.Service, f *file.Client) {
			s.SetFaults(aztest.Fault{Kind: aztest.LoseAnswer, Match: aztest.Op(op), Count: 1})
			l, err := pessimistic.Acquire(t.Context(), NewFile(f), nil)
			if err != nil {
				t.Fatalf("%s: %v", op, err)
			}
			released(t, l)
			if got := leaseState(t, NewFile(f)); got != lease.Available {
				t.Errorf("%s: the lease is %v", op, got)
			}
		})
	}
}

func TestAFailureAfterTheGrantReleasesTheFile(t *testing.T) {
	for _, op := range fileAcquire[1:] {
		fileWorld(t, func(t *testing.T, s *aztest.Service, f *file.Client) {
			s.SetFaults(aztest.Fault{Kind: aztest.Answer, Status: http.StatusForbidden, Code: "AuthorizationFailure", Match: aztest.Op(op)})
			_, err := pessimistic.Acquire(t.Context(), NewFile(f), nil)
			s.SetFaults()
			if azerr.Classify(err).Code != "AuthorizationFailure" || leaseState(t, NewFile(f)) != lease.Available {
				t.Errorf("%s: err = %v, lease %v", op, err, leaseState(t, NewFile(f)))
			}
		})
	}
}

func TestAnAcquireOfAFileThatIsCancelledAtAnyRequestLeavesNoLease(t *testing.T) {
	for k := range fileAcquire {
		fileWorld(t, func(t *testing.T, s *aztest.Service, f *file.Client) {
			ctx, cancel := context.WithCancelCause(t.Context())
			cause := fmt.Errorf("cancelled at request %d", k)
			n := 0
			s.SetFaults(aztest.Fault{Kind: aztest.Slow, Match: func(*aztest.Request) bool {
				if n == k {
					cancel(cause)
				}
				n++
				return false
			}})
			_, err := pessimistic.Acquire(ctx, NewFile(f), nil)
			if !errors.Is(err, cause) || leaseState(t, NewFile(f)) != lease.Available {
				t.Errorf("request %d: err = %v, lease %v", k, err, leaseState(t, NewFile(f)))
			}
		})
	}
}

func TestAFilesHolderLearnsOfABreakAtTheNextHeartbeat(t *testing.T) {
	fileWorld(t, func(t *testing.T, s *aztest.Service, f *file.Client) {
		l, err := pessimistic.Acquire(t.Context(), NewFile(f), nil)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := pessimistic.Break(t.Context(), NewFile(f), nil); err != nil {
			t.Fatal(err)
		}
		began := time.Now()
		<-l.Context().Done()
		if took := time.Since(began); took > 10*time.Second || !errors.Is(context.Cause(l.Context()), pessimistic.ErrLost) {
			t.Errorf("after %v: %v", took, context.Cause(l.Context()))
		}
		_ = l.Release(t.Context())
	})
}

func TestOnlyALeaseWhoseHolderIsSilentIsStale(t *testing.T) {
	fileWorld(t, func(t *testing.T, s *aztest.Service, f *file.Client) {
		if err := BreakStale(t.Context(), f, time.Minute, nil); !errors.Is(err, pessimistic.ErrLost) {
			t.Errorf("a file without a lease: %v", err)
		}
		l, err := pessimistic.Acquire(t.Context(), NewFile(f), nil)
		if err != nil {
			t.Fatal(err)
		}
		bubble.Sleep(5 * time.Minute)
		held, ok := errors.AsType[*pessimistic.HeldError](BreakStale(t.Context(), f, time.Minute, nil))
		if !ok || held.Holder != locks.OwnName() {
			t.Errorf("a holder that lives is broken: %v", held)
		}
		// From here on nothing of the holder's arrives.
		s.SetFaults(aztest.Fault{Kind: aztest.Refuse, Match: aztest.Op("Set File Metadata")})
		bubble.Sleep(45 * time.Second) // the last heartbeat may be 10 s older
		if err := BreakStale(t.Context(), f, time.Minute, nil); !errors.Is(err, pessimistic.ErrHeld) {
			t.Errorf("before its time: %v", err)
		}
		bubble.Sleep(35 * time.Second)
		if err := BreakStale(t.Context(), f, time.Minute, nil); err != nil {
			t.Errorf("a holder that was silent: %v", err)
		}
		s.SetFaults()
		id := l.ID()
		_, err = f.SetMetadata(t.Context(), &file.SetMetadataOptions{LeaseAccessConditions: &file.LeaseAccessConditions{LeaseID: &id}})
		if azerr.Classify(err).Code != "LeaseLost" {
			t.Errorf("a write with the old id: %v", err)
		}
		_ = l.Release(t.Context())
	})
}

func TestAShareIsLeasedRenewedAndGuardedAgainstDeletion(t *testing.T) {
	fileWorld(t, func(t *testing.T, s *aztest.Service, f *file.Client) {
		client := s.Share("box")
		for _, op := range []string{"", "Acquire Share Lease", "Renew Share Lease", "Release Share Lease"} {
			s.Reset()
			s.SetFaults(aztest.Fault{Kind: aztest.LoseAnswer, Count: 1, Match: aztest.Op(op)})
			l, err := pessimistic.Acquire(t.Context(), NewShare(client), nil)
			if err != nil {
				t.Fatalf("%s: %v", op, err)
			}
			bubble.Sleep(65 * time.Second)
			if _, err := client.Delete(policy.WithRetryOptions(t.Context(), policy.RetryOptions{MaxRetries: -1}), nil); azerr.Classify(err).Code != "LeaseIdMissing" {
				t.Errorf("delete: %v", err)
			}
			released(t, l)
			if op == "" && s.Requests() != 1+6+1+1 {
				t.Errorf("%d requests: %q", s.Requests(), fileOps(s))
			}
			if got := leaseState(t, NewShare(client)); got != lease.Available {
				t.Errorf("%s: the lease is %v", op, got)
			}
		}
		if _, err := client.Delete(t.Context(), &share.DeleteOptions{}); err != nil {
			t.Error(err)
		}
	})
}
