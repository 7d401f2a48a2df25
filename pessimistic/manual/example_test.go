package manual_test

import (
	"context"
	"fmt"
	"time"

	"github.com/azconc/azconc/pessimistic"
	"github.com/azconc/azconc/pessimistic/manual"
	"github.com/azconc/azconc/pkg/aztest"
)

// A lease that two steps of a pipeline share: the first acquires it and passes its id on, the second releases it.
func ExampleAcquire() {
	ctx := context.Background()
	state := aztest.New(nil).BlockBlob("jobs", "state.json")
	_, _ = state.UploadBuffer(ctx, []byte("{}"), nil)

	acquired, err := manual.Acquire(ctx, pessimistic.NewBlob(state), &manual.AcquireOptions{Duration: time.Minute})
	if err != nil {
		fmt.Println(err)
		return
	}
	id := acquired.ID // for the second step

	fmt.Println(manual.Release(ctx, pessimistic.NewBlob(state), id, nil))
	seen, err := pessimistic.Look(ctx, pessimistic.NewBlob(state), nil)
	fmt.Println(seen.State, err)
	// Output:
	// <nil>
	// available <nil>
}
