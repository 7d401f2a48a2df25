package main

// ofShards are mistakes in spreading a load: over the shards of a counter, and over time.
var ofShards = []mutant{
	{
		name: "an addition whose outcome is open is made on another shard",
		file: "optimistic/sharded/change.go",
		old:  "if !errors.Is(err, optimistic.ErrConflict) ||",
		new:  "if !errors.Is(err, optimistic.ErrConflict) && !errors.Is(err, optimistic.ErrOutcomeUnknown) ||",
		pkg:  "./optimistic/sharded", run: "TestAnOpenOutcomeStaysOnItsShard",
	},
	{
		name: "a sum ends with the shards that the process knew",
		file: "optimistic/sharded/read.go",
		old:  "want = max(want, S(&parts[0]).layout().Shards)",
		new:  "want = max(want, c.count())",
		pkg:  "./optimistic/sharded", run: "TestTheNumberOfShardsIsRaisedInUse",
	},
	{
		name: "the number of shards is raised although one could not be created",
		file: "optimistic/sharded/create.go",
		old:  "if err := c.fill(ctx, &ch, ch.Shards, shards); err != nil {",
		new:  "if err := c.fill(ctx, &ch, ch.Shards, shards); err != nil && ctx.Err() != nil {",
		pkg:  "./optimistic/sharded", run: "TestTheNumberIsRaisedOverShardsThatExist",
	},
	{
		name: "a number that was left under the name of a shard is counted",
		file: "optimistic/sharded/create.go",
		old:  "if err != nil || S(&v.Value).blank() {",
		new:  "if err != nil || from >= 0 || S(&v.Value).blank() {",
		pkg:  "./optimistic/sharded", run: "TestALeftShardIsNotCounted",
	},
	{
		name: "a merged value has the first of the shards only",
		file: "optimistic/sharded/document.go",
		old:  "all.Value = d.merge(all.Value, *p.Value)",
		new:  "_ = d.merge(all.Value, *p.Value)",
		pkg:  "./optimistic/sharded", run: "TestADocumentIsExactWithOneAnswerInFiveLost",
	},
	{
		name: "a counter that is being deleted takes additions",
		file: "optimistic/sharded/spread.go",
		old:  "case l.Deleting:",
		new:  "case l.Deleting && op == \"get\":",
		pkg:  "./optimistic/sharded", run: "TestADeletionThatFailedIsCompleted",
	},
	{
		name: "a refusal does not lower the rate",
		file: "pkg/wire/gate.go",
		old:  "max(afterRefuse*g.rate, slowest), now",
		new:  "max(g.rate, slowest), now",
		pkg:  "./pkg/wire", run: "TestPacedRequestsKeepToTheLimit",
	},
	{
		name: "a Retry-After holds for one request only",
		file: "pkg/wire/gate.go",
		old:  "until.After(g.shut) {",
		new:  "until.After(g.shut) && g.rate == 0 {",
		pkg:  "./pkg/wire", run: "TestARetryAfterHoldsForAll",
	},
	{
		name: "one refusal delays all that follow",
		file: "pkg/wire/gate.go",
		old:  "if float64(g.refused) <= bearable*float64(all) {",
		new:  "if g.refused == 0 {",
		pkg:  "./pkg/wire", run: "TestWhereNothingIsRefusedNothingWaits",
	},
	{
		name: "an account is paced for what another refuses",
		file: "pkg/wire/pace.go",
		old:  "at := place{response.Request.URL.Host, ",
		new:  "at := place{\"account\", ",
		pkg:  "./pkg/wire", run: "TestOnlyTheOverloadedPartitionIsPaced",
	},
	{
		name: "a request that was held back counts as sent",
		file: "pkg/wire/pace.go",
		old:  "return unsent{err}",
		new:  "return err",
		pkg:  "./pkg/wire", run: "TestARequestThatWaitsForItsTurnIsNotSent",
	},
	{
		name: "each request of an operation waits for a turn of its own",
		file: "pkg/wire/pace.go",
		old:  "has := turn != nil && turn.taken.Load()",
		new:  "has := turn != nil && turn.taken.Load() && path == \"\"",
		pkg:  "./pkg/wire", run: "TestAnOperationWaitsForOneTurn",
	},
}
