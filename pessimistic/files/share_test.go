package files

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/storage/azfile/file"

	"github.com/azconc/azconc/pessimistic"
	"github.com/azconc/azconc/pkg/azerr"
	"github.com/azconc/azconc/pkg/aztest"
	"github.com/azconc/azconc/pkg/aztest/bubble"
)

// Cancelled at the k-th request, which is carried out nevertheless: at the acquire itself, or while another has the lease
// and it is waited for.
func TestAnAcquireOfAShareOrAFileThatIsCancelledAtAnyRequestLeavesNoLease(t *testing.T) {
	for name, of := range map[string]func(s *aztest.Service, f *file.Client) pessimistic.Resource{
		"share": func(s *aztest.Service, _ *file.Client) pessimistic.Resource { return NewShare(s.Share("box")) },
		"file":  func(_ *aztest.Service, f *file.Client) pessimistic.Resource { return NewFile(f) },
	} {
		for _, busy := range []bool{false, true} {
			for k := range 5 {
				fileWorld(t, func(t *testing.T, s *aztest.Service, f *file.Client) {
					target := of(s, f)
					if busy { // and not renewed before it is released, so as not to be counted
						other, err := pessimistic.Acquire(t.Context(), target, nil)
						if err != nil {
							t.Fatal(err)
						}
						time.AfterFunc(3*time.Second, func() { _ = other.Release(context.Background()) })
					}
					s.Reset()
					ctx, cancel := context.WithCancelCause(t.Context())
					cause := fmt.Errorf("cancelled at request %d", k)
					n := 0
					s.SetFaults(aztest.Fault{Kind: aztest.DelayCommit, Count: 1, Match: func(*aztest.Request) bool {
						n++
						if n == k+1 {
							cancel(cause)
						}
						return n == k+1
					}})
					l, err := pessimistic.Acquire(ctx, target, &pessimistic.AcquireOptions{Poll: pollEach(time.Second)})
					if ctx.Err() == nil { // there were not so many requests
						if err != nil {
							t.Fatal(err)
						}
						released(t, l)
					} else if !errors.Is(err, cause) {
						t.Errorf("%s, busy %v, %d: %v", name, busy, k, err)
					}
					cancel(nil)
					s.SetFaults()
					bubble.Sleep(10 * time.Second)
					if got := leaseState(t, target); !got.Free() {
						t.Errorf("%s, busy %v, %d: the lease is %v", name, busy, k, got)
					}
				})
			}
		}
	}
}

func TestALostResponseToAChangeOrABreakIsRepaired(t *testing.T) {
	for name, of := range map[string]func(s *aztest.Service, f *file.Client) pessimistic.Resource{
		"Share": func(s *aztest.Service, _ *file.Client) pessimistic.Resource { return NewShare(s.Share("box")) },
		"File":  func(_ *aztest.Service, f *file.Client) pessimistic.Resource { return NewFile(f) },
	} {
		for _, kind := range []aztest.FaultKind{aztest.LoseAnswer, aztest.LoseRequest, aztest.FailAfterCommit, aztest.AnswerTwice} {
			fileWorld(t, func(t *testing.T, s *aztest.Service, f *file.Client) {
				l, err := pessimistic.Acquire(t.Context(), of(s, f), nil)
				if err != nil {
					t.Fatal(err)
				}
				s.SetFaults(aztest.Fault{Kind: kind, Match: aztest.Op("Break " + name + " Lease"), Count: 1})
				bubble.Sleep(15 * time.Second) // it is renewed
				if l.Err() != nil {
					t.Errorf("%s, %s: after a renewal: %v", name, kind, l.Err())
				}
				if _, err := pessimistic.Break(t.Context(), of(s, f), nil); err != nil {
					t.Errorf("%s, %s: break: %v", name, kind, err)
				}
				<-l.Context().Done()
				if err := context.Cause(l.Context()); !errors.Is(err, pessimistic.ErrLost) {
					t.Errorf("%s, %s: %v", name, kind, err)
				}
				_ = l.Release(t.Context())
			})
		}
	}
}

// The service says so while it still removes the share, when its name is not free yet: a real account did, and emulators do
// not.
func TestADeletedShareIsNotFoundAtOnce(t *testing.T) {
	fileWorld(t, func(t *testing.T, s *aztest.Service, _ *file.Client) {
		client := s.Share("box")
		if _, err := client.Delete(t.Context(), nil); err != nil {
			t.Fatal(err)
		}
		if _, err := pessimistic.Look(t.Context(), NewShare(client), nil); !errors.Is(err, pessimistic.ErrNotFound) || !azerr.Has(err, "ShareNotFound") {
			t.Errorf("Look = %v, want not found", err)
		}
		if _, err := client.Create(t.Context(), nil); !azerr.Has(err, "ShareBeingDeleted") {
			t.Errorf("Create = %v, want ShareBeingDeleted", err)
		}
	})
}
