package pessimistic_test

import (
	"context"
	"errors"
	"fmt"

	"github.com/azconc/azconc/pessimistic"
	"github.com/azconc/azconc/pkg/aztest"
)

// A lease on a blob, held until it is released. Its context ends if the lease is lost, and the cause says why.
func ExampleAcquire() {
	ctx := context.Background()
	state := aztest.New(nil).BlockBlob("jobs", "state.json")
	_, _ = state.UploadBuffer(ctx, []byte("{}"), nil)

	lease, err := pessimistic.Acquire(ctx, pessimistic.NewBlob(state), nil)
	if err != nil {
		fmt.Println(err)
		return
	}
	_, err = pessimistic.TryAcquire(ctx, pessimistic.NewBlob(state), nil)
	fmt.Println("a second lease:", errors.Is(err, pessimistic.ErrHeld))

	fmt.Println("still held:", lease.Context().Err() == nil)
	fmt.Println(lease.Release(ctx))
	// Output:
	// a second lease: true
	// still held: true
	// <nil>
}
