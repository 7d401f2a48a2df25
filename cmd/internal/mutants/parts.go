package main

// ofParts are mistakes in what a write is made of: a document, a transaction, and the sending of requests.
var ofParts = []mutant{
	{
		name: "a write makes the value of a Document young again",
		file: "optimistic/document_fold.go",
		old:  "Lineage: f.write.Lineage}, Value: kept}, carry)",
		new:  "Lineage: f.write.Lineage}, Value: kept}, carry)\n\tf.readAt = time.Now()",
		pkg:  "./optimistic", run: "TestADocumentReadsAgainAfterMaxAge",
	},
	{
		name: "a transaction that creates an entity does not write its guard",
		file: "optimistic/tables/transact_plan.go",
		old:  "(guarded || creates || g.assert)",
		new:  "(guarded || creates && g.assert || g.assert)",
		pkg:  "./optimistic/tables", run: "TestACreateIsSeenByWhoDependsOnAbsence",
	},
	{
		name: "a try of several requests has no bound",
		file: "pkg/wire/wire.go",
		old:  "\tif try > 0 {",
		new:  "\tif try > 0 && op != \"\" {",
		pkg:  "./pkg/wire", run: "TestATryOfSeveralRequestsIsBoundedToo",
	},
	{
		name: "the lineage of a transaction does not reach as far as the crowd",
		file: "optimistic/tables/transact_plan.go",
		old:  "return r.base.Lineage.Since(first)",
		new:  "return 0 * r.base.Lineage.Since(first)",
		pkg:  "./optimistic/tables", run: "TestACrowdOfTransactionsLeavesNothingUnknown",
	},
}
