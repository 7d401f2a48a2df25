package replay

const policyTimes = "aztest returns a stored access policy as it was sent; the service writes its times out in full"

// exceptions are requests to which aztest responds differently, by service, scenario and step, with the reason.
var exceptions = map[string]string{
	"blob/test_append_blob.test_append_block_from_url_with_source_if_modified 4": "the source was created before the recording began; how long before is not known",
	"blob/test_blob_access_conditions.test_append_block_with_if_match_fail 2":    "to an unquoted If-Match that no blob ever had, Append Block said 400 OutOfRangeInput; every other operation said 412",
	"blob/test_container.test_set_container_acl_with_signed_identifiers 2":       policyTimes,
	"blob/test_page_blob.test_get_page_ranges_diff 5":                            "the service lists pages as cleared that were written and cleared since the snapshot; aztest compares the two states",
	"queue/test_queue.test_set_queue_acl_with_signed_identifiers 2":              policyTimes,
	"table/test_table.test_set_table_acl_with_signed_identifiers 2":              policyTimes,
}
