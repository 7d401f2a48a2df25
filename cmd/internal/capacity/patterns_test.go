package capacity

// Pattern is a way to do something, with what it was measured to cost.
type Pattern struct {
	Name, Op string

	Alone   Bill    // one operation, while no other client is at work
	Crowded Bill    // one operation, while clients contend for the resource; zero if they do not
	Ceiling float64 // operations a second that one resource takes; 0 if each client has one of its own
	Bound   string  // what the ceiling comes from
	Unit    string  // of the resources
	Spreads bool    // more resources take more: the pattern is made of several
	Fold    float64 // writes a second that carry everything; 0 if each operation is a write

	Hourly Bill // what a client sends in an hour only by being there

	Then string // what takes over beyond the ceiling
}

// Patterns are in the order of the page. The test measures Alone and Hourly, and Crowded and Ceiling of those that contend.
var Patterns = []Pattern{
	{Name: "update of one blob", Op: "change", Alone: Bill{Writes: 1, Others: 1}, Crowded: Bill{Writes: 2.0, Others: 2.4}, Ceiling: 100,
		Bound: "conflicts: a read and a write, one after the other", Then: "a `Document` in one process, a sharded counter, or one blob for each subject"},
	{Name: "`Document`, clients in one process", Op: "change", Alone: Bill{Writes: 1}, Ceiling: 50000, Fold: 200,
		Bound: "256 changes in each write, one write a round trip", Then: "a `Document` for each subject"},
	{Name: "update of one entity", Op: "change", Alone: Bill{Entities: 2}, Crowded: Bill{Entities: 5.3}, Ceiling: 100,
		Bound: "conflicts, as with a blob", Then: "one entity for each subject, in partitions of their own, or a sharded counter of entities"},
	{Name: "sharded counter in blobs", Op: "addition", Alone: Bill{Writes: 1, Others: 2}, Crowded: Bill{Writes: 1.9, Others: 1.9}, Ceiling: 90, Spreads: true, Unit: "shards",
		Bound: "conflicts, on each shard", Then: "sums counted in each process and added once a second, or one counter in each of several accounts"},
	{Name: "lock", Op: "section", Alone: Bill{Writes: 1, Others: 3}, Crowded: Bill{Writes: 1.1, Others: 4.8}, Ceiling: 35,
		Bound: "one section after the other, each of 3 requests, and the next waiter's poll", Then: "locks with a name for each subject, or `Update` without a lock"},
	{Name: "semaphore of 10", Op: "section", Alone: Bill{Writes: 1, Others: 3}, Crowded: Bill{Writes: 2.2, Others: 3.9}, Ceiling: 500,
		Bound: "the same limit as a lock, per slot", Then: "more slots, or a queue with as many consumers"},
	{Name: "once, a key for each operation", Op: "key", Alone: Bill{Writes: 2, Others: 3, Entities: 3},
		Bound: "no shared resource but the account", Then: "the inbox of a consumer, or several accounts"},
	{Name: "queue with a consumer", Op: "message", Alone: Bill{Messages: 2.04, Entities: 0.07}, Ceiling: 950, Spreads: true, Unit: "queues",
		Bound: "2,000 messages a second, each sent, received and deleted", Then: "several queues by key, then several accounts"},
	{Name: "election, one group", Op: "", Hourly: Bill{Others: 1550}, Ceiling: 0,
		Bound: "500 requests a second on the lock's blob", Then: "several groups; followers that are not candidates read the leader's record"},
}
