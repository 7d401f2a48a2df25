package optimistic

import (
	"context"

	"github.com/azconc/azconc/optimistic/internal/protocol"
)

// The types that a call, its targets and the subpackages share are defined in the internal package protocol, where
// their fields and methods are documented.
type (
	// Sending tunes how a request is sent: the tries after transient faults, their pauses and time limits, the size of
	// the lineage, and what is taken for proved. The zero value is the default.
	Sending = protocol.Sending

	// Result describes what a call has done: whether the resource was changed, the ETags before and after, and the
	// number of attempts, conflicts, lost responses and requests.
	Result = protocol.Result

	// State is the version of a resource without its value: whether it exists, its ETag, its times by the service's
	// clock, and its lineage.
	State = protocol.State

	// Lineage is the history of a resource's latest writes, which is stored with the resource. It proves which writes
	// were applied. A target stores what String and OperationsString return, and reads it back with ParseLineage.
	Lineage = protocol.Lineage

	// Write sends one request. It returns the ETag that the request produced, or the service's error unchanged.
	Write = protocol.Write

	// Traits are what a call needs to know about a target beyond Target's methods: the SDK client, by which contending
	// writers recognize each other, the scope of its operations, and how to lease the resource. A target that has a
	// method Traits() Traits describes itself. The zero value fits every target.
	Traits = protocol.Traits

	// Lease keeps other writers away from a resource for the moment of an escalated update.
	Lease = protocol.Lease

	// ConflictError describes a conflict: the operation, the resource, the reason, and the ETags expected and found.
	// The change was not applied.
	ConflictError = protocol.ConflictError

	// UnknownError describes an unknown outcome: a write was sent, and what the resource holds now proves neither that
	// it was applied nor that it was not. Pass it to Resolve to ask again.
	UnknownError = protocol.UnknownError

	// NotFoundError names a resource that does not exist.
	NotFoundError = protocol.NotFoundError
)

var (
	// ErrConflict means that the resource is not what the caller assumed, and that the change was not applied. The
	// error in the chain is a *ConflictError with both ETags.
	ErrConflict = protocol.ErrConflict

	// ErrExists means that a create found the resource already there. It is a conflict too: errors.Is(err, ErrConflict)
	// holds.
	ErrExists = protocol.ErrExists

	// ErrNotFound means that the resource does not exist, and that its creation was not asked for.
	ErrNotFound = protocol.ErrNotFound

	// ErrOutcomeUnknown means that the write may or may not have been applied, and that neither could be proved. The
	// error in the chain is an *UnknownError; pass it to Resolve to ask again later. The package README lists the
	// cases.
	ErrOutcomeUnknown = protocol.ErrOutcomeUnknown

	// ErrSkip is returned by a change function to leave the resource as it is. Update then succeeds with
	// Changed == false.
	ErrSkip = protocol.ErrSkip
)

// Defaults of Sending.
const (
	// DefaultLineageSize is how many writes a lineage remembers.
	DefaultLineageSize = protocol.DefaultLineageSize

	// DefaultMinRate is the slowest transfer, in bytes per second, that a try waits for.
	DefaultMinRate = protocol.DefaultMinRate
)

// Where and how long a resource remembers.
const (
	// LineageKey is the name under which a resource's lineage is stored: the key of a blob's metadata, or the name of a
	// string property of a table entity.
	LineageKey = protocol.LineageKey

	// OperationsKey is the name under which the callers' operations are stored beside the lineage. It is present only
	// if an OperationID was used.
	OperationsKey = protocol.OperationsKey

	// OperationsKept is how many operations a resource remembers, at most.
	OperationsKept = protocol.OperationsKept

	// OperationAge is how long a resource remembers an operation, by the clocks of the writers.
	OperationAge = protocol.OperationAge
)

// Resolve judges again a write that ended in ErrOutcomeUnknown. It returns nil if the write, or its OperationID, is
// proved applied; a *ConflictError if it is proved not applied, now and for ever; and an *UnknownError otherwise. Any
// other error means that the resource could not be read. Resolve costs one request and changes nothing.
//
// Resolve helps if the outcome is unknown because the context ended or the service was unreachable: it may be proved
// once the service responds again, and once requests under way have arrived or failed. An outcome that the resource
// does not show, because the lineage was removed or the resource was deleted, remains unknown.
func Resolve(ctx context.Context, unknown *UnknownError) error { return protocol.Resolve(ctx, unknown) }

// Attempt returns, inside a change function, how often the change has been run before: 0 in the first run. Elsewhere it
// returns 0.
func Attempt(ctx context.Context) int { return protocol.Attempt(ctx) }

// CountRequest counts one request, which is about to be sent, for the call that runs in ctx. Targets call it. Without a
// call in ctx it does nothing.
func CountRequest(ctx context.Context) { protocol.CountRequest(ctx) }

// ParseLineage parses what Lineage's String and OperationsString have returned. Text that is not a lineage is taken as
// an empty one.
func ParseLineage(writes, operations string) Lineage {
	return protocol.ParseLineage(writes, operations)
}
