// Package sharded counts, and changes values of any type that has a merge, beyond what one blob takes.
//
// The service carries out about 500 requests a second on one blob, and 2,000 a second on a partition of a table. A Counter
// has S of them, its shards. Each process adds to one shard and Get sums all, so that S shards take S times as much:
//
//	visits, err := sharded.NewCounter("visits", func(name string) optimistic.Target[sharded.Part] {
//		return blobs.NewJSON[sharded.Part](container.NewBlockBlobClient(name))
//	}, nil)
//	…
//	_, err = visits.Create(ctx, 16) // again, or by several processes: it makes no difference
//	_, err = visits.Add(ctx, 1)
//	total, err := visits.Get(ctx)
//
// A Document has any type in place of the number, and a function that merges what is in two shards.
//
// The function makes the target of a name, which may as well be an entity. Below one hundred or so changes a second a single
// blob with optimistic.Update is simpler, and has a value of one moment.
//
// # Promise
//
// Each Add or Update is applied at most once, with the same proof as optimistic.Update, because it is one such change of one
// shard. It turns to another shard only when it is proved that the first has not been changed. See Get for what a sum or a
// merged value may miss.
//
// # Storage
//
// The first shard has the counter's or document's own name and stores the number of shards beside its own content. The others
// have names that begin with a hash, see Name. The number of shards can be raised at any time, and is never lowered. New
// shards are empty and exist before the number is raised, so a process that knows the old number does no harm when it changes
// a shard; a process that reads all of them reads the number first.
//
// # Limits
//
//   - A counter and a document need different names. Each refuses what it recognizes as the other: a document whose first shard
//     is empty looks like a counter.
//   - A change outside azconc to a shard is a change of the whole. One to the number of shards loses what is in those beyond it.
//   - A Create that is held up while other processes create and delete the same counter may leave it without some shards. Then
//     Get fails, and names the one that is missing.
//   - A sum or merged value is not that of one moment. A change sees its shard only: what has to decide by the whole, such as a
//     balance that must not fall below zero, needs one resource.
//   - One process needs one shard only, because it folds its concurrent calls into one write.
//   - Shards of a table that share a partition share its limit.
package sharded
