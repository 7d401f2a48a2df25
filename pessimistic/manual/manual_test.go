package manual

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore/streaming"
	"go.uber.org/goleak"

	"github.com/azconc/azconc/pessimistic"
	"github.com/azconc/azconc/pessimistic/files"
	"github.com/azconc/azconc/pkg/azerr"
	"github.com/azconc/azconc/pkg/aztest"
	"github.com/azconc/azconc/pkg/aztest/bubble"
	"github.com/azconc/azconc/pkg/lease"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

const mine, next = "11111111-1111-4111-8111-111111111111", "22222222-2222-4222-8222-222222222222"

// onEach runs a test with each kind of resource, which is free.
func onEach(t *testing.T, test func(t *testing.T, s *aztest.Service, r pessimistic.Resource)) {
	for kind, of := range map[string]func(s *aztest.Service) pessimistic.Resource{
		"blob":      func(s *aztest.Service) pessimistic.Resource { return pessimistic.NewBlob(s.BlockBlob("box", "b")) },
		"container": func(s *aztest.Service) pessimistic.Resource { return pessimistic.NewContainer(s.Container("box")) },
		"file":      func(s *aztest.Service) pessimistic.Resource { return files.NewFile(s.File("share", "f")) },
		"share":     func(s *aztest.Service) pessimistic.Resource { return files.NewShare(s.Share("share")) },
	} {
		t.Run(kind, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := aztest.New(nil)
				if _, err := s.BlockBlob("box", "b").Upload(t.Context(), streaming.NopCloser(strings.NewReader("x")), nil); err != nil {
					t.Fatal(err)
				}
				if _, err := s.File("share", "f").Create(t.Context(), 1, nil); err != nil {
					t.Fatal(err)
				}
				s.Reset()
				test(t, s, of(s))
			})
		})
	}
}

func state(t *testing.T, r pessimistic.Resource) lease.State {
	t.Helper()
	seen, err := pessimistic.Look(t.Context(), r, nil)
	if err != nil {
		t.Fatal(err)
	}
	return seen.State
}

// operations are the functions, with the operation of the service whose response is lost, and the state that follows.
var operations = []struct {
	name, op string
	held     bool // before
	call     func(ctx context.Context, r pessimistic.Resource) error
	want     lease.State
}{
	{"Acquire", "Acquire", false, func(ctx context.Context, r pessimistic.Resource) error {
		reply, err := Acquire(ctx, r, &AcquireOptions{LeaseID: mine})
		return wantID(reply, err, mine)
	}, lease.Leased},
	{"Renew", "Renew", true, func(ctx context.Context, r pessimistic.Resource) error {
		reply, err := Renew(ctx, r, mine, nil)
		return wantID(reply, err, mine)
	}, lease.Leased},
	{"Change", "Change", true, func(ctx context.Context, r pessimistic.Resource) error {
		reply, err := Change(ctx, r, mine, next, nil)
		return wantID(reply, err, next)
	}, lease.Leased},
	{"Release", "Release", true, func(ctx context.Context, r pessimistic.Resource) error { return Release(ctx, r, mine, nil) }, lease.Available},
}

func wantID(reply lease.Result, err error, id string) error {
	if err == nil && reply.ID != id {
		return fmt.Errorf("the reply is about %q, want %q", reply.ID, id)
	}
	return err
}

// lost loses the responses of a lease operation. A file has no renewal: its heartbeat is lost instead.
func lost(op string, n int) aztest.Fault {
	return aztest.Fault{Kind: aztest.LoseAnswer, Count: n, Match: func(r *aztest.Request) bool {
		return strings.HasPrefix(r.Op, op) && strings.HasSuffix(r.Op, "Lease") || op == "Renew" && r.Op == "Set File Metadata"
	}}
}

func TestANilResourceIsRefused(t *testing.T) {
	for _, o := range operations {
		if err := o.call(t.Context(), nil); err == nil || !strings.Contains(err.Error(), "no resource") {
			t.Errorf("%s: %v", o.name, err)
		}
	}
}

func TestRequestsOfEachFunction(t *testing.T) {
	ofAFile := map[string]int{"Acquire": 3, "Renew": 2}
	for _, o := range operations {
		t.Run(o.name, func(t *testing.T) {
			onEach(t, func(t *testing.T, s *aztest.Service, r pessimistic.Resource) {
				if o.held {
					if _, err := Acquire(t.Context(), r, &AcquireOptions{LeaseID: mine}); err != nil {
						t.Fatal(err)
					}
				}
				s.Reset()
				want := 1
				if r.String() == "share/f" {
					want = max(want, ofAFile[o.name])
				}
				if err := o.call(t.Context(), r); err != nil || s.Requests() != want {
					t.Errorf("%s: %v after %d requests, want %d", r, err, s.Requests(), want)
				}
			})
		})
	}
}

func TestALostResponseIsHarmless(t *testing.T) {
	for _, o := range operations {
		t.Run(o.name, func(t *testing.T) {
			onEach(t, func(t *testing.T, s *aztest.Service, r pessimistic.Resource) {
				if o.held {
					if _, err := Acquire(t.Context(), r, &AcquireOptions{LeaseID: mine}); err != nil {
						t.Fatal(err)
					}
				}
				s.SetFaults(lost(o.op, 1))
				if err := o.call(t.Context(), r); err != nil || state(t, r) != o.want {
					t.Errorf("%v; the lease is %v, want %v", err, state(t, r), o.want)
				}
			})
		})
	}
}

func TestAnOutcomeThatStaysUnknownIsReported(t *testing.T) {
	for _, o := range operations {
		t.Run(o.name, func(t *testing.T) {
			onEach(t, func(t *testing.T, s *aztest.Service, r pessimistic.Resource) {
				if o.held {
					if _, err := Acquire(t.Context(), r, &AcquireOptions{LeaseID: mine}); err != nil {
						t.Fatal(err)
					}
				}
				s.SetFaults(aztest.Fault{Kind: aztest.LoseRequest})
				err := o.call(t.Context(), r)
				if u, ok := errors.AsType[*pessimistic.UnknownError](err); !ok || !errors.Is(err, pessimistic.ErrOutcomeUnknown) || u.Resource != r.String() {
					t.Errorf("err = %v, want an *UnknownError that names the resource", err)
				}
			})
		})
	}
}

func TestARefusalIsOfTheTypesOfPackagePessimistic(t *testing.T) {
	onEach(t, func(t *testing.T, s *aztest.Service, r pessimistic.Resource) {
		if _, err := Acquire(t.Context(), r, &AcquireOptions{LeaseID: next}); err != nil {
			t.Fatal(err)
		}
		for name, tt := range map[string]struct {
			err  func() error
			want error
		}{
			"Acquire": {func() error { _, err := Acquire(t.Context(), r, nil); return err }, pessimistic.ErrHeld},
			"Renew":   {func() error { _, err := Renew(t.Context(), r, mine, nil); return err }, pessimistic.ErrLost},
			"Change":  {func() error { _, err := Change(t.Context(), r, mine, "", nil); return err }, pessimistic.ErrLost},
			"Release": {func() error { return Release(t.Context(), r, mine, nil) }, pessimistic.ErrLost},
		} {
			s.Reset()
			err := tt.err()
			about, ok := errors.AsType[interface {
				error
				About() string
			}](err)
			if !ok || about.About() != r.String() || !errors.Is(err, tt.want) || azerr.Classify(err).Code == "" || s.Requests() != 1 {
				t.Errorf("%s: %v after %d requests", name, err, s.Requests())
			}
		}
	})
}

// A lease under an id that nobody else knows is released if no response ever says whether it was acquired.
func TestAnAcquireWithoutAResponseLeavesNoLease(t *testing.T) {
	onEach(t, func(t *testing.T, s *aztest.Service, r pessimistic.Resource) {
		s.SetFaults(lost("Acquire", 6))
		reply, err := Acquire(t.Context(), r, nil)
		if err == nil || errors.Is(err, pessimistic.ErrOutcomeUnknown) || reply.ID == "" || state(t, r) != lease.Available {
			t.Errorf("%+v, %v; the lease is %v", reply, err, state(t, r))
		}
		s.SetFaults(lost("Acquire", 6), aztest.Fault{Kind: aztest.Throttle, Match: func(q *aztest.Request) bool { return strings.HasPrefix(q.Op, "Release") }})
		reply, err = Acquire(t.Context(), r, nil)
		s.SetFaults()
		if !errors.Is(err, pessimistic.ErrOutcomeUnknown) || state(t, r) != lease.Leased {
			t.Errorf("%v; the lease is %v", err, state(t, r))
		}
		if err := Release(t.Context(), r, reply.ID, nil); err != nil {
			t.Errorf("release under the id of the error's reply: %v", err)
		}
	})
}

func TestAcquireWaitsForAsLongAsAsked(t *testing.T) {
	onEach(t, func(t *testing.T, s *aztest.Service, r pessimistic.Resource) {
		if _, err := Acquire(t.Context(), r, &AcquireOptions{LeaseID: mine}); err != nil {
			t.Fatal(err)
		}
		began := time.Now()
		if _, err := Acquire(t.Context(), r, &AcquireOptions{Wait: 10 * time.Second}); azerr.Classify(err).Kind != azerr.Held || time.Since(began) > 10*time.Second {
			t.Errorf("%v after %v, want it held after 10 s", err, time.Since(began))
		}
		time.AfterFunc(3*time.Second, func() { _ = Release(context.Background(), r, mine, nil) })
		if _, err := Acquire(t.Context(), r, &AcquireOptions{Wait: time.Minute}); err != nil {
			t.Error(err)
		}
		if !r.Supports().Expiry {
			return
		}
		bubble.Sleep(time.Minute)
		if state(t, r) != lease.Expired {
			t.Errorf("after the default duration the lease is %v", state(t, r))
		}
	})
}

func TestADurationThatTheServiceDoesNotTakeIsRefused(t *testing.T) {
	onEach(t, func(t *testing.T, s *aztest.Service, r pessimistic.Resource) {
		for _, d := range []time.Duration{time.Second, 61 * time.Second, 20500 * time.Millisecond, -2} {
			if _, err := Acquire(t.Context(), r, &AcquireOptions{Duration: d}); err == nil || !strings.Contains(err.Error(), "AcquireOptions.Duration") {
				t.Errorf("%v: %v", d, err)
			}
		}
		if s.Requests() != 0 {
			t.Errorf("%d requests", s.Requests())
		}
	})
}

func TestAnAcquireOfALeaseThatIsBeingBrokenSaysSo(t *testing.T) {
	onEach(t, func(t *testing.T, s *aztest.Service, r pessimistic.Resource) {
		if !r.Supports().Expiry {
			return // it ends at once
		}
		if _, err := Acquire(t.Context(), r, &AcquireOptions{LeaseID: mine}); err != nil {
			t.Fatal(err)
		}
		if _, err := pessimistic.Break(t.Context(), r, &pessimistic.BreakOptions{Grace: 10 * time.Second}); err != nil {
			t.Fatal(err)
		}
		_, err := Acquire(t.Context(), r, &AcquireOptions{LeaseID: mine})
		if held, ok := errors.AsType[*pessimistic.HeldError](err); !ok || held.State != lease.Breaking {
			t.Errorf("err = %v", err)
		}
	})
}

// emulator renews a lease for its last holder, whatever id is sent.
type emulator struct{ pessimistic.Resource }

func (emulator) Renew(context.Context, string, lease.Conditions) (lease.Result, error) {
	return lease.Result{ID: next}, nil
}

func TestARenewalForAnotherHolderIsALoss(t *testing.T) {
	r := emulator{pessimistic.NewBlob(aztest.New(nil).BlockBlob("box", "b"))}
	_, err := Renew(t.Context(), r, mine, nil)
	if l, ok := errors.AsType[*pessimistic.LostError](err); !ok || l.Reason != pessimistic.Taken {
		t.Errorf("err = %v, want a *LostError", err)
	}
}
