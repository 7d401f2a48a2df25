package blobs

import "github.com/azconc/azconc/optimistic/internal/anyblob"

// TypeError means that the blob is of another type than the operation writes, of this package or of appends and pages. Type
// is that of the blob, Want that which the operation writes. Nothing was written. The service refuses some operations on a
// blob of another type (409 InvalidBlobType); an emulator would replace an append or page blob by a block blob.
type TypeError = anyblob.TypeError
