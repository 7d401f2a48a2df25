package protocol

import (
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore"
)

// Result describes what an operation did and what it cost. The counts are exact.
//
// ETag is empty if the response to the write was lost and the lineage proved it applied (Changed and Resolved > 0). The
// lineage proves the write, but not which of the versions since then is its own: a later version may contain another
// writer's change.
type Result struct {
	Changed        bool        // a write was applied
	Created        bool        // the write created the resource
	AlreadyApplied bool        // the OperationID had been applied before, or by another call at the same time
	ETag           azcore.ETag // the version that was written, or read if nothing was written; empty if not known
	BaseETag       azcore.ETag // the version that was replaced; empty if the write created the resource
	WriteID        string      // the id in the lineage; empty if nothing was written

	Attempts  int           // runs of the change
	Conflicts int           // writes that another writer preempted
	Ambiguous int           // tries after which it was open whether the write was applied
	Resolved  int           // ambiguous writes whose outcome was proved
	Requests  int           // requests sent
	Folded    int           // changes that shared the write; 0 outside a Document
	Elapsed   time.Duration // from the call to its end
}
