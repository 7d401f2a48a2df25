package main

// ofShards are mistakes in spreading a counter over shards: package sharded.
var ofShards = []mutant{
	{
		name: "an addition whose outcome is open is made on another shard",
		file: "optimistic/sharded/add.go",
		old:  "if !errors.Is(err, optimistic.ErrConflict) ||",
		new:  "if !errors.Is(err, optimistic.ErrConflict) && !errors.Is(err, optimistic.ErrOutcomeUnknown) ||",
		pkg:  "./optimistic/sharded", run: "TestAnOpenOutcomeStaysOnItsShard",
	},
	{
		name: "a sum ends with the shards that the process knew",
		file: "optimistic/sharded/get.go",
		old:  "want = max(want, parts[0].Shards)",
		new:  "want = max(want, c.count())",
		pkg:  "./optimistic/sharded", run: "TestTheNumberOfShardsIsRaisedInUse",
	},
	{
		name: "the number of shards is raised although one could not be created",
		file: "optimistic/sharded/create.go",
		old:  "if err := c.fill(ctx, &ch, p.Shards, shards); err != nil {",
		new:  "if err := c.fill(ctx, &ch, p.Shards, shards); err != nil && ctx.Err() != nil {",
		pkg:  "./optimistic/sharded", run: "TestTheNumberIsRaisedOverShardsThatExist",
	},
	{
		name: "a number that was left under the name of a shard is counted",
		file: "optimistic/sharded/create.go",
		old:  "if err != nil || v.Value.N == 0 {",
		new:  "if err != nil || v.Value.N >= 0 {",
		pkg:  "./optimistic/sharded", run: "TestALeftShardIsNotCounted",
	},
	{
		name: "a counter that is being deleted takes additions",
		file: "optimistic/sharded/part.go",
		old:  "case p.Deleting:",
		new:  "case p.Deleting && op == \"get\":",
		pkg:  "./optimistic/sharded", run: "TestADeletionThatFailedIsCompleted",
	},
}
