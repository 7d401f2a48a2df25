package optimistic

import (
	"errors"
	"fmt"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore"

	"github.com/azconc/azconc/optimistic/internal/protocol"
	"github.com/azconc/azconc/pkg/ptr"
	"github.com/azconc/azconc/pkg/retry"
)

// UpdateOptions tunes Update. The zero value is the default.
type UpdateOptions struct {
	// Conditions are checked in addition to the version that was read. With IfMatch the resource must be at that
	// version, and a conflict is final. IfTags and LeaseID are sent with the write. IfNoneMatch and the dates are
	// evaluated on each version that was read, after the change has run on it; if one does not hold, the error is a
	// *ConflictError. Since the write replaces that very version, they are as strict as if the service had checked them.
	Conditions Conditions

	// OperationID makes the change idempotent across processes. If the resource remembers the operation, the change is
	// not run and AlreadyApplied is set; this is checked before any condition. Of several concurrent calls one applies
	// the operation.
	//
	// A resource remembers the last OperationsKept (256) operations that are no older than OperationAge (7 days, by the
	// writers' clocks). Index tags remember 7 and a page range 12, of any age. A change that must never be repeated
	// needs package once, below idempotent. The resource forgets its operations if a writer outside azconc replaces all
	// metadata, or if an unconditional Upload replaces the blob. The same id on a blob's content, metadata and tags is
	// three operations.
	//
	// A change that leaves the value unchanged is still written, so that the operation is remembered; ErrSkip writes
	// nothing. A write is refused if the metadata, or the entity, has no room for all operations in the window, which
	// take up to 3.4 KB of the 8 KB. Targets that cannot store operations (headers, sequence numbers, access policies)
	// refuse an OperationID. Defaults to none.
	OperationID string

	// Create runs the change on T's zero value if the resource does not exist. Defaults to false: ErrNotFound.
	Create bool

	// DryRun runs the change and reports the result that it would have, without sending the write. Defaults to false.
	DryRun bool

	// Attempts bounds how many times the change is run; negative means no bound. Defaults to 100: of a crowd of 128 writers,
	// one in 50,000 needs more than 50.
	Attempts int

	// Elapsed bounds the time spent on conflicts, from the call to the last attempt; negative means no bound. Defaults
	// to 30 s.
	Elapsed time.Duration

	// Backoff spaces the attempts after a conflict if the lineage does not show how many others are writing. Defaults to
	// full jitter of two round trips, doubling, at most 2 s.
	Backoff retry.Backoff

	// EscalateAfter makes an update lease the blob once, briefly, after that many conflicts, so that no other writer
	// can be faster. All writers of the blob must set it: a writer that does not is refused during the lease (412
	// LeaseIdMissing), where one that does waits. Defaults to 0, never: contending writers that wait as the lineage
	// suggests need fewer requests (measured with 32 writers: 4.7 per commit, against 5.1 with leases after 4
	// conflicts).
	EscalateAfter int

	SendOptions

	_ struct{}
}

// budget bounds the attempts.
func (o UpdateOptions) budget() retry.Budget {
	return protocol.ConflictBudget(o.Attempts, o.Elapsed, o.Backoff)
}

// withDefaults returns the options with their defaults filled in, or an error that names the field that is out of range.
func (o *UpdateOptions) withDefaults() (UpdateOptions, error) {
	out := ptr.Value(o)
	if out.OperationID != "" && out.LineageSize < 0 {
		return out, errors.New("UpdateOptions.OperationID: it is remembered in the lineage, which a negative LineageSize turns off")
	}
	if out.EscalateAfter < 0 {
		return out, fmt.Errorf("UpdateOptions.EscalateAfter: %d is negative; 0 means never", out.EscalateAfter)
	}
	c := out.Conditions
	if c.IfMatch == azcore.ETagAny {
		out.Conditions.IfMatch = "" // an update without Create requires an existing resource anyway
		if out.Create {
			return out, errors.New(`UpdateOptions: IfMatch "*" asks for an existing resource, Create for a missing one; give one of them`)
		}
	}
	if err := c.Validate(); err != nil {
		return out, err
	}
	var err error
	out.SendOptions, err = out.SendOptions.WithDefaults()
	return out, err
}
