package explore_test

import (
	"context"
	"testing"

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

// TestIDsHaveTheSameNamesInEveryRun explores a program that names a blob by a random id: a choice is found again by the name
// of the resource.
func TestIDsHaveTheSameNamesInEveryRun(t *testing.T) {
	r := explore.Run(t, sessions(1), &explore.Options{Faults: 1, Kinds: []explore.Kind{explore.LoseResponse}, Schedules: 2000})
	if r.Violation != "" || !r.Complete {
		t.Errorf("%v\n%s", r, r.Violation)
	}
	if r := explore.Run(t, sessions(2), &explore.Options{Faults: 1, Preemptions: 1}); r.Pruned == 0 {
		t.Errorf("no state is reached twice: %v", r)
	}
}
