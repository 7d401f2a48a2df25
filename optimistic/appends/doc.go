// Package appends appends to append blobs exactly once. Append adds bytes, and AppendRecord a record with an id of its own,
// which Records reads back. A Log has records in as many blobs as it takes, since the service ends each at 50,000 appends.
//
// The operations give the promise of package optimistic: applied at most once, exactly once on success, and
// optimistic.ErrOutcomeUnknown if neither can be proved. An append blob is deleted by blobs.Delete, and its metadata, tags
// and headers are targets of package blobs. An operation on a blob of another type ends with a *optimistic.TypeError.
package appends
