package optimistic_test

import (
	"context"
	"errors"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/azconc/azconc/optimistic"
	"github.com/azconc/azconc/optimistic/blobs"
	"github.com/azconc/azconc/optimistic/internal/optest"
	"github.com/azconc/azconc/pkg/azerr"
	"github.com/azconc/azconc/pkg/aztest"
)

// TestAnEscalatedUpdateWins: a rival is faster every time, until the blob is leased.
func TestAnEscalatedUpdateWins(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, client := optest.Quiet(t, `{"n":0}`)
		refused := 0
		res, err := optimistic.Update(t.Context(), blobs.NewJSON[optest.Counter](client), func(_ context.Context, c *optest.Counter) error {
			_, err := optimistic.Update(context.Background(), blobs.NewJSON[optest.Counter](client), optest.Increment, nil)
			if azerr.Classify(err).Kind == azerr.Held {
				refused++
			} else if err != nil {
				t.Error(err)
			}
			c.N++
			return nil
		}, &optimistic.UpdateOptions{EscalateAfter: 3, Attempts: 10})
		if err != nil || res.Conflicts != 3 || refused != 1 {
			t.Fatalf("Update = %+v, %v; the rival was refused %d times", res, err, refused)
		}
		if got := optest.Count(t, client); got != 4 {
			t.Errorf("n = %d, want 4", got)
		}
		props, err := client.GetProperties(t.Context(), nil)
		if err != nil || string(*props.LeaseState) != "available" {
			t.Errorf("the lease is %v, %v; want it given back", *props.LeaseState, err)
		}
		_ = s
	})
}

// TestAnEscalationSurvivesEveryFault and leaves no lease behind.
func TestAnEscalationSurvivesEveryFault(t *testing.T) {
	for _, op := range []string{"Acquire Blob Lease", "Release Blob Lease", "Put Blob"} {
		for name, fault := range optest.Every(aztest.Op(op)) {
			t.Run(op+"/"+name, func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					s := aztest.New(&aztest.Options{Latency: func() time.Duration { return 5 * time.Millisecond }})
					client := s.BlockBlob("box", "n.json")
					optest.Put(t, client, `{"n":0}`)
					s.SetFaults(fault)
					var wg sync.WaitGroup
					for range 4 {
						wg.Go(func() {
							target := blobs.NewJSON[optest.Counter](s.BlockBlob("box", "n.json"))
							for range 5 {
								if _, err := optimistic.Update(t.Context(), target, optest.Increment, &optimistic.UpdateOptions{Attempts: -1, Elapsed: -1, EscalateAfter: 1}); err != nil {
									t.Error(err)
								}
							}
						})
					}
					wg.Wait()
					s.SetFaults()
					if fault.Kind != aztest.DelayCommit {
						s.Flush()
					}
					if got := optest.Count(t, client); got != 20 {
						t.Errorf("n = %d, want 20", got)
					}
				})
			})
		}
	}
}

func TestACancelledEscalationReleasesTheLease(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := aztest.New(&aztest.Options{Latency: func() time.Duration { return time.Second }})
		client := s.BlockBlob("box", "n.json")
		optest.Put(t, client, `{"n":0}`)
		ctx, cancel := context.WithCancelCause(t.Context())
		reason := errors.New("gave up")
		s.SetFaults(aztest.Fault{Kind: aztest.Slow, Match: func(r *aztest.Request) bool {
			if r.Op == "Acquire Blob Lease" {
				time.AfterFunc(700*time.Millisecond, func() { cancel(reason) }) // carried out, not answered
			}
			return false
		}})
		_, err := optimistic.Update(ctx, blobs.NewJSON[optest.Counter](client), func(_ context.Context, c *optest.Counter) error {
			optest.Put(t, client, `{"n":5}`)
			c.N++
			return nil
		}, &optimistic.UpdateOptions{EscalateAfter: 1, SendOptions: optimistic.SendOptions{ConfirmConflicts: optimistic.ConfirmNever}})
		if !errors.Is(err, reason) {
			t.Errorf("err = %v", err)
		}
		props, err := client.GetProperties(t.Context(), nil)
		if err != nil || string(*props.LeaseState) != "available" {
			t.Errorf("the lease is %v, %v\n%v", *props.LeaseState, err, s.Log())
		}
	})
}
