package optimistic_test

import (
	"context"
	"errors"
	"fmt"

	"github.com/azconc/azconc/optimistic"
	"github.com/azconc/azconc/optimistic/blobs"
	"github.com/azconc/azconc/pkg/aztest"
)

// State is the content of the blob in these examples.
type State struct {
	N int `json:"n"`
}

// The counter is incremented. The function may run more than once; its result is written at most once.
func ExampleUpdate() {
	ctx := context.Background()
	blob := aztest.New(nil).BlockBlob("jobs", "state.json") // in production: a blockblob.Client

	if _, err := optimistic.Create(ctx, blobs.NewJSON[State](blob), State{N: 41}, nil); err != nil {
		fmt.Println(err)
		return
	}
	res, err := optimistic.Update(ctx, blobs.NewJSON[State](blob), func(ctx context.Context, s *State) error {
		s.N++
		return nil
	}, nil)
	switch {
	case err == nil: // applied exactly once
	case errors.Is(err, optimistic.ErrConflict): // not applied: the budget was spent on conflicts
	case errors.Is(err, optimistic.ErrOutcomeUnknown): // perhaps applied: optimistic.Resolve looks again
	}
	fmt.Println(res.Changed, res.Requests, err)

	v, err := optimistic.Read(ctx, blobs.NewJSON[State](blob), nil)
	fmt.Println(v.Value.N, err)
	// Output:
	// true 2 <nil>
	// 42 <nil>
}

// A response is lost with every fifth write. Update determines which writes were applied, and applies none twice.
func ExampleUpdate_lostResponses() {
	ctx := context.Background()
	service := aztest.New(nil)
	counter := blobs.NewJSON[State](service.BlockBlob("jobs", "state.json"))
	service.SetFaults(aztest.Fault{Kind: aztest.LoseAnswer, Match: aztest.Writes, Probability: 0.2})

	for range 60 {
		if _, err := optimistic.Update(ctx, counter, func(_ context.Context, s *State) error {
			s.N++
			return nil
		}, &optimistic.UpdateOptions{Create: true}); err != nil {
			fmt.Println(err)
			return
		}
	}
	v, err := optimistic.Read(ctx, counter, nil)
	fmt.Println(v.Value.N, err)
	// Output: 60 <nil>
}

// A Document remembers the version it wrote, so that the next update needs no read.
func ExampleDocument() {
	ctx := context.Background()
	blob := aztest.New(nil).BlockBlob("jobs", "state.json")

	document, err := optimistic.NewDocument(blobs.NewJSON[State](blob), &optimistic.DocumentOptions{
		Update: optimistic.UpdateOptions{Create: true},
	})
	if err != nil {
		fmt.Println(err)
		return
	}
	for range 3 {
		res, err := document.Update(ctx, func(_ context.Context, s *State) error {
			s.N++
			return nil
		})
		fmt.Println(res.Requests, err)
	}
	// Output:
	// 2 <nil>
	// 1 <nil>
	// 1 <nil>
}
