// Package conformance tests a storage service against the article "Managing concurrency in Azure Storage": which
// operation returns an ETag, which conditions it supports, whether it checks a lease, and with which status and code it
// refuses. What is asked is in rules/*.txt, as requests and expected responses; rules_test.go says how to read and to add
// them.
//
// It is a test alone, which runs on the in-memory service of aztest, on Azurite, and, by scripts/conformance, on a real
// account. The expectations are the service's. Where Azurite is known to differ, its response is listed next to the
// expectation with the reason, and is asserted on Azurite, so that a change is noticed.
package conformance
