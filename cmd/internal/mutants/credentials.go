package main

// ofCredentials are mistakes in verifying the credentials of requests: the service in memory.
var ofCredentials = []mutant{
	{
		name: "an expired SAS is accepted",
		file: "pkg/aztest/internal/auth/sas.go",
		old:  "if now.Before(begins) || !now.Before(ends) {",
		new:  "if now.Before(begins) {",
		pkg:  "./pkg/aztest", run: "TestAnExpiredSASIsRefusedWhenItsTimeHasCome",
	},
	{
		name: "an operation of a transaction is not authorized",
		file: "pkg/aztest/internal/tableservice/table_batch.go",
		old:  "if a == nil && permit != nil {",
		new:  "if a == nil && permit != nil && i > 0 {",
		pkg:  "./pkg/aztest", run: "TestASASForATableCannotReachAnotherInATransaction",
	},
	{
		name: "a SAS that creates overwrites",
		file: "pkg/aztest/internal/auth/permissions.go",
		old:  "case g.createsOnly(r, letters) && g.look.Exists(",
		new:  "case g.account && g.createsOnly(r, letters) && !g.look.Exists(",
		pkg:  "./pkg/aztest/internal/auth", run: "TestEachOperationNeedsItsLetter",
	},
}
