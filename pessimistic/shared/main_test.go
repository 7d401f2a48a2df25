package shared

import (
	"context"
	"runtime/debug"
	"testing"

	"github.com/Azure/azure-sdk-for-go/sdk/storage/azblob/container"
	"go.uber.org/goleak"

	"github.com/azconc/azconc/pessimistic"
	"github.com/azconc/azconc/pessimistic/internal/pesstest"
)

func TestMain(m *testing.M) {
	debug.SetGCPercent(400) // requests in simulated time leave much to collect, and little is in use
	goleak.VerifyTestMain(m)
}

// lockerOf returns a Locker whose requests meet the faults of w.
func lockerOf(w *pesstest.World, opts *pessimistic.LockerOptions) *pessimistic.Locker {
	w.T.Helper()
	return lockerOver(w.T, w.Container(), opts)
}

// direct returns the Locker of another client, which meets no faults and is not counted.
func direct(w *pesstest.World, opts *pessimistic.LockerOptions) *pessimistic.Locker {
	w.T.Helper()
	return lockerOver(w.T, w.Service.Container("box"), opts)
}

// holdOf returns the hold of a slot that was acquired.
func holdOf(s *Slot, err error) (*pessimistic.Hold, error) {
	if err != nil {
		return nil, err
	}
	return s.Hold(), nil
}

func reading(l *RWLock) func(context.Context, *pessimistic.LockOptions) (*pessimistic.Hold, error) {
	return func(ctx context.Context, opts *pessimistic.LockOptions) (*pessimistic.Hold, error) {
		return holdOf(l.RLock(ctx, opts))
	}
}

func writing(l *RWLock) func(context.Context, *pessimistic.LockOptions) (*pessimistic.Hold, error) {
	return func(ctx context.Context, opts *pessimistic.LockOptions) (*pessimistic.Hold, error) {
		return l.Lock(ctx, opts)
	}
}

func lockerOver(t *testing.T, client *container.Client, opts *pessimistic.LockerOptions) *pessimistic.Locker {
	t.Helper()
	k, err := pessimistic.NewLocker(client, opts)
	if err != nil {
		t.Fatal(err)
	}
	return k
}
