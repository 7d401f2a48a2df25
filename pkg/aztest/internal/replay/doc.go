// Package replay replays recorded traffic of real storage accounts against aztest and compares the answers.
//
// testdata holds the facts: requests and what the service answered, reduced by TestRecordingsAreDistilled to what a comparison
// needs. The replay runs in the tests of this package: each scenario in a bubble whose clock runs as the recorded Date
// headers do. ETags, lease ids, snapshots, copy ids, message ids, pop receipts and continuations are mapped from the
// recorded answer to the replayed one; the mapping has to be one to one, which proves that an ETag moved exactly when the
// service's did.
//
// testdata/scope.md is generated: what is compared, what is not, and why. Every difference is a failed test unless it is
// listed as an exception, with its reason.
package replay
