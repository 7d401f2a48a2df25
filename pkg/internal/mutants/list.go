package main

// mutants are the mistakes, each with the test that notices.
var mutants = []mutant{
	// The outcome of a write: package optimistic.
	{
		name: "a 412 after a lost response is taken for a conflict",
		file: "optimistic/commit.go",
		old:  "\t\tcase !ambiguous:\n\t\t\treturn \"\", c.refusal(w, out, err)\n",
		new:  "\t\tcase out.Kind == azerr.Conflict:\n\t\t\treturn \"\", c.refusal(w, out, err)\n",
		pkg:  "./pkg/aztest/explore", run: "TestUpdateIsAppliedOnceInEverySchedule",
	},
	{
		name: "a conflict without a sign of trouble is not looked into",
		file: "optimistic/judge.go",
		old:  "return w.traced && !w.anyBase && !w.remove && !c.s.TrustConflicts",
		new:  "return false",
		pkg:  "./pkg/aztest/explore", run: "TestUpdateIsAppliedOnceInEverySchedule|TestATransferIsMadeOnce|TestADocumentAppliesOnce",
	},
	{
		name: "our own entry in the lineage is overlooked",
		file: "optimistic/judge.go",
		old:  "case w.id != \"\" && now.Lineage.holds(w.id):",
		new:  "case w.id == \"-\" && now.Lineage.holds(w.id):",
		pkg:  "./pkg/aztest/explore", run: "TestUpdateIsAppliedOnceInEverySchedule",
	},
	{
		name: "what cannot be proved is taken for refused",
		file: "optimistic/judge.go",
		old:  "return unprovable, \"it changed, and its lineage no longer reaches back to the version written to\"",
		new:  "return refused, \"\"",
		pkg:  "./optimistic", run: "TestNoOperationIsAppliedTwice|Lineage|Judge|Unprov|Unknown",
	},
	{
		name: "a create whose response was lost is sent again",
		file: "optimistic/commit.go",
		old:  "if w.creates() && gone {",
		new:  "if w.creates() && gone && w.anyBase {",
		pkg:  "./pkg/aztest/explore", run: "TestATicketIsIssuedOnce",
	},
	{
		name: "the absence of a blob proves our deletion",
		file: "optimistic/judge.go",
		old:  "\tcase w.remove && !now.Exists:\n\t\treturn unprovable, \"it is gone, and nothing shows by whose deletion\"\n",
		new:  "\tcase w.remove && !now.Exists:\n\t\treturn committed, \"\"\n",
		pkg:  "./pkg/aztest/explore", run: "TestATicketIsClaimedOnce",
	},
	// The time of a lease: package pessimistic.
	{
		name: "work under a lease goes on until the lease is over",
		file: "pessimistic/timing.go",
		old:  "t.cadence, t.try, t.stop = duration/3, duration/6, duration*2/3",
		new:  "t.cadence, t.try, t.stop = duration/3, duration/6, duration*4/3",
		pkg:  "./pessimistic", run: "Deadline|Trial|Work|Stops|TheTime",
	},
	// The fence.
	{
		name: "a fence that follows another is not larger",
		file: "pkg/fence/fence.go",
		old:  "return max(previous+1, Token(service.UnixMilli())), nil",
		new:  "return max(previous, Token(service.UnixMilli())), nil",
		pkg:  "./pkg/aztest/explore", run: "TestALockExcludes",
	},
	{
		name: "a later holder's fence is admitted",
		file: "pkg/fence/fence.go",
		old:  "if stored > t {",
		new:  "if stored > t+1<<40 {",
		pkg:  "./pessimistic", run: "Fence",
	},
}
