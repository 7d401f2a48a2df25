// Package pages writes page blobs on the condition that nobody else has changed them since they were read. Create, Put and
// Clear are single requests; a Range of pages and the sequence number (NewSequenceNumber) are targets for
// optimistic.Update and optimistic.Document.
//
// The operations give the promise of package optimistic: applied at most once, exactly once on success, and
// optimistic.ErrOutcomeUnknown if neither can be proved. A page blob is deleted by blobs.Delete, and its metadata, tags and
// headers are targets of package blobs. An operation on a blob of another type ends with a *blobs.TypeError.
package pages
