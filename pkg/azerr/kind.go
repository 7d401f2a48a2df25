package azerr

// Kind is the meaning of a response for the sender of the request.
type Kind uint8

// The kinds.
const (
	Other        Kind = iota // none of the below: unknown to this package
	Conflict                 // the resource is not as the request required; see Reason
	Held                     // another client holds it: a lease, an open handle
	Lost                     // the caller's lease or pop receipt is not valid, or no longer valid
	Unknown                  // no response, or one that does not show whether the request was applied
	Throttled                // the service is busy, or in a state that ends by itself
	NotFound                 // the resource does not exist
	Unauthorised             // the caller is not permitted to do this
	Permanent                // the request is refused, and will be refused again
	BadInput                 // the request itself is invalid
	Unreachable              // there was no connection: nothing was sent
)

var kindNames = [...]string{"other", "conflict", "held", "lost", "unknown", "throttled", "not found", "unauthorised", "permanent", "bad input", "unreachable"}

func (k Kind) String() string {
	if int(k) < len(kindNames) {
		return kindNames[k]
	}
	return "invalid"
}

// Reason is the reason for a Conflict or, for files, what prevents the request.
type Reason uint8

// The reasons.
const (
	None          Reason = iota
	Changed              // the resource is at another version than If-Match named, or another condition did not hold
	Gone                 // it existed and no longer does
	Exists               // it exists although it must not
	Position             // append position or maximum size
	Sequence             // page blob sequence number
	BlockList            // staged blocks are gone: another commit discarded them
	SourceChanged        // the source of a copy does not satisfy the conditions
	NotModified          // If-None-Match or If-Modified-Since of a read: there is nothing newer
	LeaseBroken          // another client has broken the lease; Kind Lost

	// Files in use through SMB. The Kind is Held unless noted.
	OpenHandle    // an SMB client has it open and does not share what the request needs
	RangeLocked   // an SMB client has locked some of the bytes
	DeletePending // an SMB client has marked it for deletion: it is deleted with the last handle, unless the mark is cleared
	CacheFlush    // an SMB client has not flushed its cache yet; Kind Unknown
	ReadOnly      // the file's read-only attribute is set; Kind Permanent
)

var reasonNames = [...]string{"none", "changed", "gone", "exists", "position", "sequence", "blocklist", "source changed", "not modified", "lease broken",
	"open handle", "range locked", "delete pending", "cache flush", "read only"}

func (r Reason) String() string {
	if int(r) < len(reasonNames) {
		return reasonNames[r]
	}
	return "invalid"
}

// InUse reports whether the request is prevented by SMB clients that use the file.
func (r Reason) InUse() bool {
	switch r {
	case OpenHandle, RangeLocked, DeletePending, CacheFlush:
		return true
	}
	return false
}
