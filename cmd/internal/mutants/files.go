package main

// ofFiles are mistakes in how the ranges of files are read and written: package pessimistic/files.
var ofFiles = []mutant{
	{
		name: "a list of a file's ranges counts for any version",
		file: "pessimistic/files/holes.go",
		old:  " || version != \"\" && etag != version {",
		new:  " {",
		pkg:  "./pessimistic/files", run: "TestAListThatCannotBeTrustedIsIgnored",
	},
	{
		name: "a range that was read ahead may be of another version",
		file: "pessimistic/files/read_ahead.go",
		old:  "\tcase !a.same(p.seen):\n\t\treturn errChanged\n",
		new:  "",
		pkg:  "./pessimistic/files", run: "TestRangesReadAheadAreOfOneVersionToo",
	},
	{
		name: "a torn write counts ranges behind the one that failed",
		file: "pessimistic/files/write.go",
		old:  "\tif w.failed == nil {\n\t\tw.written, w.failed, ",
		new:  "\tif w.failed == nil || p.err == nil {\n\t\tw.written, w.failed, ",
		pkg:  "./pessimistic/files", run: "TestATornWriteOfManyRangesSaysHowFarItIsWhole",
	},
	{
		name: "zeros are not written where a file that is new had none",
		file: "pessimistic/files/write.go",
		old:  "\tif at >= old {\n\t\treturn true",
		new:  "\tif at >= old || w.begun {\n\t\treturn true",
		pkg:  "./pessimistic/files", run: "TestZerosAreNotWritten",
	},
}
