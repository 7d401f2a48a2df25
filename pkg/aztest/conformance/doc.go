// Package conformance tests a storage service against the article "Managing concurrency in Azure Storage": which
// operation returns an ETag, which conditions it supports, whether it checks a lease, and with which status and code it
// refuses.
//
// The same suite runs on the in-memory service of aztest, on an emulator and, if there is one, on a real account. The
// expectations are the service's. Where an emulator is known to differ, its response is listed next to the expectation
// with the reason, and is asserted on the emulator, so that a change is noticed.
//
// It is public because a program (scripts/conformance) and the tests of aztest share it, and without a promise: its
// functions follow what they need, in any version.
package conformance
