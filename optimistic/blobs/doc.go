// Package blobs changes blobs on the condition that nobody else has changed them since they were read.
//
// The content, the metadata, the index tags, the HTTP headers, the pages and the sequence number of a blob are targets
// for optimistic.Update, Read, Create, Replace and Delete, and for optimistic.Document. NewJSON, NewBytes, NewMetadata,
// NewTags, NewHeaders, NewPageRange and NewSequenceNumber make them; Fenced restricts a target to the holder of a lock.
//
// Everything else that the service can do on a condition is a function: Upload, Download, Append, AppendRecord, Seal,
// StageBlock, CommitBlocks, CreatePages, PutPages, ClearPages, Copy, AbortCopy and Snapshot. They give the promise of
// package optimistic: at most once, exactly once on success, and optimistic.ErrOutcomeUnknown where neither can be
// proved.
package blobs
