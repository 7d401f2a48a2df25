// Package blobs changes blobs on the condition that nobody else has changed them since they were read.
//
// The content, the metadata, the index tags and the HTTP headers of a blob are targets for optimistic.Update, Read, Create,
// Replace and Delete, and for optimistic.Document. The constructors are NewJSON, NewBytes, NewMetadata, NewTags and
// NewHeaders; Fenced restricts a target to the holder of a lock.
//
// The other conditional operations of the service are functions: Upload, Download, StageBlock, CommitBlocks, Copy,
// AbortCopy, Snapshot and Delete. They give the promise of package optimistic: applied at most once, exactly once on
// success, and optimistic.ErrOutcomeUnknown if neither can be proved. Append blobs and page blobs are written by the
// packages appends and pages.
package blobs
