// Package pages writes page blobs on the condition that nobody else has changed them since they were read. Create, Put,
// Clear and RaiseSequenceNumber are single requests; a Range of pages is a target for optimistic.Update and
// optimistic.Document.
//
// The operations give the promise of package optimistic: applied at most once, exactly once on success, and
// optimistic.ErrOutcomeUnknown if neither can be proved. They protect against writers that give conditions too: of 749 writes
// of page blobs that were recorded on real accounts, two unconditional Put Page requests that ran at once got the same ETag, so a
// condition on that ETag holds whichever of them was read. A page blob is deleted by blobs.Delete, and its metadata, tags and
// headers are targets of package blobs. An operation on a blob of another type ends with a *optimistic.TypeError.
package pages
