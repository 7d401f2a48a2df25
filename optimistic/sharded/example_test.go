package sharded_test

import (
	"context"
	"fmt"
	"log"

	"github.com/azconc/azconc/optimistic"
	"github.com/azconc/azconc/optimistic/blobs"
	"github.com/azconc/azconc/optimistic/sharded"
	"github.com/azconc/azconc/pkg/aztest"
)

func ExampleCounter() {
	service := aztest.New(nil)
	service.BlockBlob("stats", "any") // makes the container
	container := service.Container("stats")
	ctx := context.Background()

	visits, err := sharded.NewCounter("visits", func(name string) optimistic.Target[sharded.Part] {
		return blobs.NewJSON[sharded.Part](container.NewBlockBlobClient(name))
	}, nil)
	if err != nil {
		log.Fatal(err)
	}
	if _, err := visits.Create(ctx, 16); err != nil { // again, or by several processes: it makes no difference
		log.Fatal(err)
	}
	for range 3 {
		if _, err := visits.Add(ctx, 1, nil); err != nil {
			log.Fatal(err)
		}
	}
	total, err := visits.Get(ctx)
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(total.Value, "in", total.Shards, "shards")
	// Output: 3 in 16 shards
}
