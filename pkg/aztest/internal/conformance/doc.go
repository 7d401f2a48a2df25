// Package conformance asks a storage service the questions of the article "Managing concurrency in Azure Storage": which
// operation returns an ETag, which conditions does it take, does it honour a lease, and with which status and code does
// it refuse?
//
// One suite runs on the in-memory service of aztest, on an emulator and, where there is one, on a real account. The
// expectations are the service's. Where an emulator is known to answer otherwise, its answer stands beside them with
// the reason, and is asserted on the emulator, so that a change of it is noticed.
package conformance
