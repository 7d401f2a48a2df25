// Package lease is the one adapter to the lease operations of Azure Storage. A Resource can be leased; bloblease
// implements it for blobs and containers, and filelease for files and shares, so that a program which leases blobs does
// not link the SDK of Azure Files.
//
// Each method of a Resource sends a single request through the SDK's client, without the SDK's retries, and counted and
// observed by the Wire in the context: see wire.Request. What a response means for a holder, and when to renew, is up to
// the caller: see package pessimistic.
package lease
