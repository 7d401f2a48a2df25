package replay

// exceptions are requests to which aztest responds differently, by service, scenario and step, with the reason.
var exceptions = map[string]string{
	"blob/test_append_blob.test_append_block_from_url_with_source_if_modified 4": "the source was created before the recording began; how long before is not known",
	"blob/test_blob_access_conditions.test_append_block_with_if_match_fail 2":    "to an unquoted If-Match that no blob ever had, Append Block said 400 OutOfRangeInput; every other operation said 412",
	"blob/net2019/ContainerClientTests/BreakLeaseAsync_AccessConditions 2":       "the recorded Date moved on by a second between acquire and break, less than a second passed",
}
