package explore_test

import (
	"context"
	"errors"
	"testing"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore/policy"
	"github.com/Azure/azure-sdk-for-go/sdk/storage/azblob/blockblob"
	"github.com/google/uuid"

	"github.com/azconc/azconc/pkg/aztest/explore"
	"github.com/azconc/azconc/pkg/retry"
)

// TestAClientDrawsTheSameRandomNumbersInEveryRun matters because the length of a wait decides which requests reach the gate
// together, and so which choices a schedule has.
func TestAClientDrawsTheSameRandomNumbersInEveryRun(t *testing.T) {
	met := map[float64]bool{}
	for range 3 {
		explore.Run(t, func(*explore.World) explore.Program {
			return explore.Program{
				Clients: []func(context.Context, *explore.Client) error{func(ctx context.Context, _ *explore.Client) error {
					met[retry.Random(ctx)] = true
					return nil
				}},
				Check: func() error { return nil },
			}
		}, nil)
	}
	if len(met) != 1 {
		t.Errorf("in three runs a client drew %v", met)
	}
}

func TestEachClientDrawsItsNumber(t *testing.T) {
	var drawn [3]float64
	explore.Run(t, func(*explore.World) explore.Program {
		p := explore.Program{Check: func() error { return nil }}
		for i := range drawn {
			p.Clients = append(p.Clients, func(ctx context.Context, _ *explore.Client) error {
				retry.Random(ctx)
				drawn[i] = retry.Random(ctx)
				return nil
			})
		}
		return p
	}, &explore.Options{Random: []float64{0.25, 0.75}})
	if want := [3]float64{0.25, 0.75, 0.25}; drawn != want {
		t.Errorf("drew %v, want %v", drawn, want)
	}
}

// TestASecondDeliveryMayComeLater explores a client that replaces what another has written: it finds its own write undone
// only if the other's arrives once more after it.
func TestASecondDeliveryMayComeLater(t *testing.T) {
	setup := func(w *explore.World) explore.Program {
		ctx := context.Background()
		put := func(ctx context.Context, c *explore.Client, text string) error {
			_, err := c.BlockBlob("box", "n").UploadBuffer(policy.WithRetryOptions(ctx, policy.RetryOptions{MaxRetries: -1}), []byte(text), nil)
			return err
		}
		read := func(ctx context.Context, blob *blockblob.Client) string {
			var text [3]byte
			n, _ := blob.DownloadBuffer(ctx, text[:], nil)
			return string(text[:n])
		}
		return explore.Program{
			Clients: []func(context.Context, *explore.Client) error{
				func(ctx context.Context, c *explore.Client) error { return put(ctx, c, "one") },
				func(ctx context.Context, c *explore.Client) error {
					if read(ctx, c.BlockBlob("box", "n")) != "one" {
						return errors.New("nothing to replace")
					}
					return put(ctx, c, "two")
				},
			},
			Check: func() error {
				if w.Errors()[1] == nil && read(ctx, w.Service.BlockBlob("box", "n")) == "one" {
					return errors.New("the second write is undone")
				}
				return nil
			},
		}
	}
	if r := explore.Run(t, setup, nil); r.Violation != "" || !r.Complete {
		t.Errorf("without a fault: %v\n%s", r, r.Violation)
	}
	r := explore.Run(t, setup, &explore.Options{Faults: 1, Kinds: []explore.Kind{explore.Twice}})
	if r.Violation == "" {
		t.Fatalf("the first write twice: %v", r)
	}
	if again := explore.Run(t, setup, &explore.Options{Faults: 1, Kinds: []explore.Kind{explore.Twice}, Replay: r.Replay}); again.Violation != r.Violation {
		t.Errorf("replayed: %q, want %q", again.Violation, r.Violation)
	}
}

func TestASearchThatCutsAScheduleIsNotComplete(t *testing.T) {
	r := explore.Run(t, increments(1, updateOnce), &explore.Options{Steps: 1})
	if r.Complete || r.Cut == 0 {
		t.Errorf("of schedules of more than one step: %v", r)
	}
}

// TestIDsHaveTheSameNamesInEveryRun explores a program that names a blob by a random id: a choice is found again by the name
// of the resource.
func TestIDsHaveTheSameNamesInEveryRun(t *testing.T) {
	if raced {
		t.Skip("SKIP: the names of ids do not depend on the race detector, and 2000 schedules take ten times as long with it")
	}
	drafts := func(clients int) func(*explore.World) explore.Program {
		return func(w *explore.World) explore.Program {
			w.Service.BlockBlob("box", "x") // makes the container
			p := explore.Program{Check: func() error { return nil }}
			for range clients {
				p.Clients = append(p.Clients, func(ctx context.Context, c *explore.Client) error {
					draft := c.BlockBlob("box", uuid.NewString())
					_, err := draft.UploadBuffer(ctx, []byte("text"), nil)
					_, deleted := draft.Delete(ctx, nil)
					return errors.Join(err, deleted)
				})
			}
			return p
		}
	}
	r := explore.Run(t, drafts(1), &explore.Options{Faults: 1, Kinds: []explore.Kind{explore.LoseResponse}, Schedules: 2000})
	if r.Violation != "" || !r.Complete {
		t.Errorf("%v\n%s", r, r.Violation)
	}
	if r := explore.Run(t, drafts(2), &explore.Options{Faults: 1, Preemptions: 1}); r.Pruned == 0 {
		t.Errorf("no state is reached twice: %v", r)
	}
}
