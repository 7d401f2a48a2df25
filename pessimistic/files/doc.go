// Package files changes files of Azure Files safely, together with SMB clients.
//
// FileREST has no conditional requests: the last writer wins. It has leases on files, which do not expire, are not renewed,
// and are respected by SMB clients too. NewFile and NewShare return what package pessimistic leases:
//
//	l, err := pessimistic.Acquire(ctx, files.NewFile(client), nil)
//
// Update and Upload write under such a lease. Download reads ranges of a single version. Delete deletes a file exactly
// once, and treats a deletion that an SMB client has begun neither as success nor as absence. An *InUseError names the SMB
// clients that have a file open; WaitUnlocked waits until they have closed it, Handles lists their handles, and ForceClose
// closes them. BreakStale breaks the lease of a stale holder, one that has stopped writing heartbeats.
//
// Data in an SMB client's cache is not visible through REST until the client flushes it. File leases have not been tested
// against a real account: pkg/aztest/testdata/files.md lists the open questions that only one can answer.
package files
