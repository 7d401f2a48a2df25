package azerr

// Kind is what a response means to the sender of the request.
type Kind uint8

// The kinds.
const (
	Other        Kind = iota // none of the below: unknown to this package
	Conflict                 // the resource is not as the request demanded; Reason says how
	Held                     // another client holds it: a lease, an open handle
	Lost                     // the caller's lease or pop receipt is not, or no longer, valid
	Unknown                  // no response, or one that does not say whether the request was applied
	Throttled                // the service is busy, or in a state that passes by itself
	NotFound                 // there is no such resource
	Unauthorised             // the caller may not do this
	Permanent                // it is refused, and will be refused again
	BadInput                 // the request itself is wrong
	Unreachable              // there was no connection: nothing was sent
)

var kindNames = [...]string{"other", "conflict", "held", "lost", "unknown", "throttled", "not found", "unauthorised", "permanent", "bad input", "unreachable"}

func (k Kind) String() string {
	if int(k) < len(kindNames) {
		return kindNames[k]
	}
	return "invalid"
}

// Reason says why a request met a Conflict and, for files, what prevents it.
type Reason uint8

// The reasons.
const (
	None          Reason = iota
	Changed              // another version than If-Match named, or another condition on the resource that did not hold
	Gone                 // it existed and does not any more
	Exists               // it exists and should not
	Position             // append position or maximum size
	Sequence             // page blob sequence number
	BlockList            // staged blocks are gone: another commit discarded them
	SourceChanged        // the source of a copy is not as demanded
	NotModified          // a read's If-None-Match or If-Modified-Since: nothing newer
	LeaseBroken          // another client has broken the lease; Kind Lost

	// Of files in use through SMB, with Kind Held unless said.
	OpenHandle    // an SMB client has it open and does not share what the request needs
	RangeLocked   // an SMB client has locked some of the bytes
	DeletePending // an SMB client has marked it for deletion; it goes with the last handle, or the mark is taken back
	CacheFlush    // an SMB client was asked for what it has in its cache, and has not answered yet; Kind Unknown
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

// InUse reports whether SMB clients use the file in a way that prevents the request, until they stop.
func (r Reason) InUse() bool {
	switch r {
	case OpenHandle, RangeLocked, DeletePending, CacheFlush:
		return true
	}
	return false
}
