package sharded_test

import (
	"context"
	"fmt"
	"log"
	"maps"

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
		if _, err := visits.Add(ctx, 1); err != nil {
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

func ExampleDocument() {
	service := aztest.New(nil)
	service.BlockBlob("stats", "any") // makes the container
	container := service.Container("stats")
	ctx := context.Background()

	// The longest time in milliseconds that each page has taken.
	type slowest = map[string]int
	pages, err := sharded.NewDocument("slowest", func(name string) optimistic.Target[sharded.Share[slowest]] {
		return blobs.NewJSON[sharded.Share[slowest]](container.NewBlockBlobClient(name))
	}, func(a, b slowest) slowest {
		all := maps.Clone(a)
		for page, ms := range b {
			all[page] = max(all[page], ms)
		}
		return all
	}, nil)
	if err != nil {
		log.Fatal(err)
	}
	if _, err := pages.Create(ctx, 16); err != nil {
		log.Fatal(err)
	}
	for page, ms := range map[string]int{"/": 12, "/search": 180} {
		if _, err := pages.Update(ctx, func(_ context.Context, shard *slowest) error {
			if *shard == nil {
				*shard = slowest{}
			}
			(*shard)[page] = max((*shard)[page], ms)
			return nil
		}); err != nil {
			log.Fatal(err)
		}
	}
	all, err := pages.Get(ctx)
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(all.Value, "in", all.Shards, "shards")
	// Output: map[/:12 /search:180] in 16 shards
}
