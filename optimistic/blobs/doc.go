// Package blobs changes blobs on the condition that nobody else has changed them since they were read.
//
// The content, the metadata, the index tags, the HTTP headers, the pages and the sequence number of a blob are targets
// for optimistic.Update, Read, Create, Replace and Delete, and for optimistic.Document. The constructors are NewJSON,
// NewBytes, NewMetadata, NewTags, NewHeaders, NewPageRange and NewSequenceNumber; Fenced restricts a target to the
// holder of a lock.
//
// The other conditional operations of the service are functions: Upload, Download, Append, AppendRecord, Seal,
// StageBlock, CommitBlocks, CreatePages, PutPages, ClearPages, Copy, AbortCopy and Snapshot. They give the promise of
// package optimistic: applied at most once, exactly once on success, and optimistic.ErrOutcomeUnknown if neither can be
// proved.
package blobs
