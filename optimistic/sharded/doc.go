// Package sharded counts beyond what one blob takes.
//
// The service carries out about 500 requests a second on one blob, and 2,000 a second on a partition of a table. A Counter
// has S of them, its shards. Each process adds to one shard and Get sums all, so that S shards take S times as much:
//
//	visits, err := sharded.NewCounter("visits", func(name string) optimistic.Target[sharded.Part] {
//		return blobs.NewJSON[sharded.Part](container.NewBlockBlobClient(name))
//	}, nil)
//	…
//	_, err = visits.Create(ctx, 16) // again, or by several processes: it makes no difference
//	_, err = visits.Add(ctx, 1, nil)
//	total, err := visits.Get(ctx)
//
// The function makes the target of a name, which may as well be an entity. Below one hundred or so additions a second a single
// blob with optimistic.Update is simpler, and has a value of one moment.
//
// # Promise
//
// Each Add is applied at most once, with the same proof as optimistic.Update, because it is one such change of one shard. It
// turns to another shard only when it is proved that the first has not been changed. See Get for what a sum may miss.
//
// # Storage
//
// The first shard has the counter's own name. Besides its own number it stores how many shards there are, and the counter's
// generation: a random id that Create makes, and that is in the names of the other shards, after a hash. What an earlier counter of
// the name has left behind, or a Create that failed, is under other names: no process counts it, adds to it, or deletes one for
// the other.
//
// The number of shards stays as it was created. More cost storage only, and one request more for each Get.
//
// # Limits
//
//   - A change outside azconc to a shard is a change of the sum. One to the number of shards loses what is in those beyond it.
//   - A sum is not that of one moment. An addition sees its shard only: what has to decide by the whole, such as a balance that
//     must not fall below zero, needs one resource.
//   - A Create that fails may leave empty shards, which nothing removes.
//   - One process needs one shard only, because it folds its concurrent calls into one write.
//   - Shards of a table that share a partition share its limit.
package sharded
