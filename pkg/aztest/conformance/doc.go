// Package conformance tests a storage service against the article "Managing concurrency in Azure Storage": which
// operation returns an ETag, which conditions it supports, whether it checks a lease, and with which status and code it
// refuses. What is asked stands in rules/*.txt, as requests and expected responses; rules.go says how to read and to add
// them.
//
// The same suite runs on the in-memory service of aztest, on Azurite, and on a real account with scripts/conformance. The
// expectations are the service's. Where Azurite is known to differ, its response is listed next to the expectation
// with the reason, and is asserted on Azurite, so that a change is noticed.
//
// It is public because a program (scripts/conformance) and the tests of aztest share it, and without a promise: its
// functions follow what they need, in any version.
package conformance
