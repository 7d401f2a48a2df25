package files

import (
	"context"
	"errors"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore/policy"
	"github.com/Azure/azure-sdk-for-go/sdk/storage/azfile/file"

	"github.com/azconc/azconc/pessimistic"
	"github.com/azconc/azconc/pkg/azerr"
	"github.com/azconc/azconc/pkg/aztest"
)

// reading is an operation that needs the content.
func reading(f *file.Client) func(context.Context) error {
	return func(ctx context.Context) error {
		resp, err := f.DownloadStream(policy.WithRetryOptions(ctx, policy.RetryOptions{MaxRetries: -1}), nil)
		if err == nil {
			resp.Body.Close()
		}
		return err
	}
}

// lockedFor lets a client have the file to itself for d.
func lockedFor(s *aztest.Service, d time.Duration) {
	s.OpenSMB("box", "f", aztest.SMBHandle{ID: "1", ClientName: "desk", Write: true})
	time.AfterFunc(d, func() { s.CloseSMB("box", "f", "1") })
}

// obstacles are the ways for an SMB client to prevent access, and how each ends.
var obstacles = map[azerr.Reason]struct{ begin, end func(s *aztest.Service) }{
	azerr.OpenHandle: {
		func(s *aztest.Service) {
			s.OpenSMB("box", "f", aztest.SMBHandle{ID: "1", ClientName: "desk", Write: true})
		},
		func(s *aztest.Service) { s.CloseSMB("box", "f", "1") },
	},
	azerr.RangeLocked: {
		func(s *aztest.Service) { s.OpenSMB("box", "f", shared("1")); s.LockRangeSMB("box", "f", "1", 0, 0) },
		func(s *aztest.Service) { s.CloseSMB("box", "f", "1") },
	},
	azerr.DeletePending: {
		func(s *aztest.Service) { s.OpenSMB("box", "f", shared("1")); s.MarkDeletedSMB("box", "f", true) },
		func(s *aztest.Service) { s.MarkDeletedSMB("box", "f", false) },
	},
	azerr.CacheFlush: {
		func(s *aztest.Service) {
			s.SetFaults(aztest.Fault{Kind: aztest.Answer, Status: http.StatusRequestTimeout, Code: "ClientCacheFlushDelay", Match: aztest.Op("Get File")})
		},
		func(s *aztest.Service) { s.SetFaults() },
	},
}

func TestWaitingEndsWithinOnePollOfTheObstacle(t *testing.T) {
	const every, busy = 2 * time.Second, 5 * time.Second
	for reason, o := range obstacles {
		fileWorld(t, func(t *testing.T, s *aztest.Service, f *file.Client) {
			o.begin(s)
			began := time.Now()
			time.AfterFunc(busy, func() { o.end(s) })
			err := WaitUnlocked(t.Context(), f, &WaitOptions{Poll: pollEach(every)}, reading(f))
			took := time.Since(began)
			if err != nil || took < busy || took > busy+every || s.Requests() != 4 {
				t.Errorf("%v: %v after %v and %d requests", reason, err, took, s.Requests())
			}
		})
	}
}

func TestTheClientsAreNamedWhenTheWaitEnds(t *testing.T) {
	for reason, o := range obstacles {
		fileWorld(t, func(t *testing.T, s *aztest.Service, f *file.Client) {
			o.begin(s)
			began := time.Now()
			err := WaitUnlocked(t.Context(), f, &WaitOptions{MaxWait: 5 * time.Second, Poll: pollEach(2 * time.Second)}, reading(f))
			used, ok := errors.AsType[*InUseError](err)
			if !ok || !errors.Is(err, pessimistic.ErrHeld) || used.Reason != reason || azerr.Classify(err).Reason != reason {
				t.Fatalf("%v: %v", reason, err)
			}
			// Attempts at 0, 2, 4 and 5 s, and then the names.
			if took := time.Since(began); took != 5*time.Second || used.Waited != took || s.Requests() != 4+1 {
				t.Errorf("%v: after %v, waited %v, %d requests", reason, took, used.Waited, s.Requests())
			}
			want := 1
			if reason == azerr.CacheFlush {
				want = 0
			}
			if len(used.Handles) != want || want > 0 && !strings.Contains(err.Error(), "desk") {
				t.Errorf("%v: handles %v in %q", reason, used.Handles, err)
			}
		})
	}
}

func TestAnErrorAtTheEndOfTheContextNamesTheClients(t *testing.T) {
	fileWorld(t, func(t *testing.T, s *aztest.Service, f *file.Client) {
		lockedFor(s, time.Hour)
		ctx, cancel := context.WithCancelCause(t.Context())
		cause := errors.New("enough")
		time.AfterFunc(3*time.Second, func() { cancel(cause) })
		err := WaitUnlocked(ctx, f, nil, reading(f))
		used, ok := errors.AsType[*InUseError](err)
		if !ok || !errors.Is(err, cause) || !errors.Is(err, pessimistic.ErrHeld) || len(used.Handles) != 1 || used.Waited != 3*time.Second {
			t.Errorf("%v", err)
		}
	})
}

func TestAPermanentRefusalIsNotWaitedFor(t *testing.T) {
	for _, tt := range []struct {
		status int
		code   string
	}{
		{http.StatusPreconditionFailed, "ReadOnlyAttribute"},
		{http.StatusConflict, "ReadOnlyAttribute"}, // as the table of error codes has it
		{http.StatusPreconditionFailed, "LeaseIdMissing"},
		{http.StatusConflict, "LeaseAlreadyPresent"},
		{http.StatusNotFound, "ResourceNotFound"},
		{http.StatusForbidden, "AuthorizationFailure"},
		{http.StatusConflict, "ShareBeingDeleted"},
		{http.StatusServiceUnavailable, "ServerBusy"}, // nothing says yet that there is anything to be waited for
	} {
		fileWorld(t, func(t *testing.T, s *aztest.Service, f *file.Client) {
			s.SetFaults(aztest.Fault{Kind: aztest.Answer, Status: tt.status, Code: tt.code})
			if err := WaitUnlocked(t.Context(), f, nil, reading(f)); azerr.Classify(err).Code != tt.code || s.Requests() != 1 {
				t.Errorf("%s: %v after %d requests", tt.code, err, s.Requests())
			}
			// Not even once it waits, but for faults that pass.
			s.SetFaults(aztest.Fault{Kind: aztest.Answer, Status: tt.status, Code: tt.code, Skip: 1, Count: 1})
			s.Reset()
			lockedFor(s, 30*time.Second)
			want, n := tt.code, 2
			if tt.code == "ServerBusy" || tt.code == "ShareBeingDeleted" {
				want, n = "", 0
			}
			if err := WaitUnlocked(t.Context(), f, nil, reading(f)); azerr.Classify(err).Code != want || n > 0 && s.Requests() != n {
				t.Errorf("%s while waiting: %v after %d requests", tt.code, err, s.Requests())
			}
		})
	}
}

func TestTheClientsAreReportedDuringTheWait(t *testing.T) {
	fileWorld(t, func(t *testing.T, s *aztest.Service, f *file.Client) {
		lockedFor(s, 25*time.Second)
		began, noted := time.Now(), []time.Duration{}
		err := WaitUnlocked(t.Context(), f, &WaitOptions{Poll: pollEach(time.Second), Waiting: func(e InUseError) {
			noted = append(noted, time.Since(began))
			if len(e.Handles) != 1 || e.Handles[0].ClientName != "desk" {
				t.Errorf("noted of %v", e.Handles)
			}
		}}, reading(f))
		if err != nil || !slices.Equal(noted, []time.Duration{0, 10 * time.Second, 20 * time.Second}) {
			t.Errorf("%v; noted at %v", err, noted)
		}
	})
}

func TestWaitingForAllHandlesToClose(t *testing.T) {
	for _, end := range []string{"closed", "gone", "time over"} {
		fileWorld(t, func(t *testing.T, s *aztest.Service, f *file.Client) {
			s.OpenSMB("box", "f", shared("1"))
			s.OpenSMB("box", "f", shared("2"))
			s.MarkDeletedSMB("box", "f", end == "gone")
			time.AfterFunc(3*time.Second, func() { s.CloseSMB("box", "f", "1") })
			time.AfterFunc(7*time.Second, func() { s.CloseSMB("box", "f", "2") })
			o := &WaitOptions{Poll: pollEach(2 * time.Second)}
			if end == "time over" {
				o.MaxWait = 5 * time.Second
			}
			began := time.Now()
			err := WaitClosed(t.Context(), f, o)
			took, used := time.Since(began), (*InUseError)(nil)
			switch end {
			case "closed":
				if err != nil || took != 8*time.Second || s.Requests() != 5 {
					t.Errorf("%s: %v after %v and %d requests", end, err, took, s.Requests())
				}
			case "gone":
				if !errors.Is(err, pessimistic.ErrNotFound) || took != 8*time.Second {
					t.Errorf("%s: %v after %v", end, err, took)
				}
			default:
				if !errors.As(err, &used) || took != 5*time.Second || len(used.Handles) != 1 || s.Requests() != 4 || used.Reason != azerr.OpenHandle {
					t.Errorf("%s: %v after %v and %d requests", end, err, took, s.Requests())
				}
			}
		})
	}
}

func TestAnErrorNamesThreeHandlesAndCountsTheRest(t *testing.T) {
	e := &InUseError{Resource: "box/f", Reason: azerr.OpenHandle, Waited: 1500 * time.Millisecond}
	for _, name := range []string{"a", "b", "c", "d", "e"} {
		e.Handles = append(e.Handles, Handle{ClientName: name})
	}
	if got, want := e.Error(), "box/f: held by an SMB client, which has it open: a; b; c and 2 more, after waiting for 1.5s"; got != want {
		t.Errorf("%q, want %q", got, want)
	}
}

func TestALeaseOnAFileThatIsOpenForWritingIsHeldByAnSMBClient(t *testing.T) {
	fileWorld(t, func(t *testing.T, s *aztest.Service, f *file.Client) {
		lockedFor(s, 20*time.Second)
		_, err := pessimistic.TryAcquire(t.Context(), NewFile(f), nil)
		held, ok := errors.AsType[*pessimistic.HeldError](err)
		if !ok || held.State != "" || !strings.Contains(err.Error(), "an SMB client") {
			t.Errorf("%v", err)
		}
		l, err := pessimistic.Acquire(t.Context(), NewFile(f), nil)
		if err != nil {
			t.Fatal(err)
		}
		released(t, l)
	})
}

func TestALeaseWaitsForTheEndOfAPendingDeletion(t *testing.T) {
	for name, tt := range map[string]struct {
		after func(s *aztest.Service)
		err   error
	}{
		"gone":       {func(s *aztest.Service) { s.CloseSMB("box", "f", "1") }, pessimistic.ErrNotFound},
		"taken back": {func(s *aztest.Service) { s.MarkDeletedSMB("box", "f", false) }, nil},
	} {
		fileWorld(t, func(t *testing.T, s *aztest.Service, f *file.Client) {
			s.OpenSMB("box", "f", shared("1"))
			s.MarkDeletedSMB("box", "f", true)
			if _, err := pessimistic.TryAcquire(t.Context(), NewFile(f), nil); !errors.Is(err, pessimistic.ErrHeld) {
				t.Errorf("%s, without waiting: %v", name, err)
			}
			_, err := pessimistic.Acquire(t.Context(), NewFile(f), &pessimistic.AcquireOptions{MaxWait: time.Second})
			if !errors.Is(err, pessimistic.ErrHeld) {
				t.Errorf("%s, for a second: %v", name, err)
			}
			time.AfterFunc(5*time.Second, func() { tt.after(s) })
			l, err := pessimistic.Acquire(t.Context(), NewFile(f), nil)
			if !errors.Is(err, tt.err) {
				t.Errorf("%s: %v", name, err)
			}
			if l != nil {
				released(t, l)
			}
		})
	}
}
