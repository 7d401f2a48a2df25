package protocol

import (
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore"
)

// Result is what an operation did and what it took. The counts are exact.
//
// ETag is empty if the response to the write was lost and the lineage proved it applied (Changed and Resolved > 0). The
// lineage proves the write, but not which of the versions since is the write's own: a later one may have another
// writer's change.
type Result struct {
	Changed        bool        // a write was applied
	Created        bool        // the write created the resource
	AlreadyApplied bool        // the OperationID had been applied before, or by another call at the same time
	ETag           azcore.ETag // the version that was written, or read if nothing was written; empty if not known
	BaseETag       azcore.ETag // the version that was replaced; empty if the write created the resource
	WriteID        string      // the id in the lineage; empty if nothing was written

	Attempts  int // how often the change was run
	Conflicts int // how often another writer was faster
	Ambiguous int // tries that left open whether the write was applied
	Resolved  int // ambiguous writes whose outcome was proved
	Requests  int // requests sent
	Folded    int // changes that shared the write; 0 outside a Document
	Elapsed   time.Duration
}
