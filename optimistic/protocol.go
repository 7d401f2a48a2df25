package optimistic

import (
	"context"

	"github.com/azconc/azconc/optimistic/internal/protocol"
	"github.com/azconc/azconc/pkg/azerr"
	"github.com/azconc/azconc/pkg/fence"
)

// The types that a call, its targets and the subpackages share are defined in the internal package protocol, where
// their fields and methods are documented.
type (
	// SendOptions tunes how a request is sent. All operations take it, and the zero value is the default. Tries (6), TryTimeout
	// (30 s), MinRate and Pause bound and space the tries after transient faults; Grace (2 s) bounds the last look after ctx
	// has ended. LineageSize bounds the lineage, ConfirmConflicts says which conflicts need a proof, and Recreate sends a
	// create again whose response was lost. Hooks observe the operation: its span and those of its requests, and its
	// conflicts, lost responses and their resolution.
	SendOptions = protocol.SendOptions

	// Confirm says whether a conflict needs a proof that the write was not applied. An intermediary that terminates the
	// connection may deliver a write twice, and pass on the refusal of the second delivery although the first was applied.
	// What the lineage proves decides in every case. Confirm decides about the conflicts for which it proves nothing.
	Confirm = protocol.Confirm

	// Result describes what a call has done: whether the resource was changed, the ETags before and after, and the
	// number of attempts, conflicts, lost responses and requests.
	Result = protocol.Result

	// State is the version of a resource without its value: Exists, its ETag, and LastModified and Created by
	// the service's clock, which are zero if they are not known.
	State = protocol.State

	// ConflictError describes a conflict: the operation, the resource, the reason, and the ETags expected and found.
	// The change was not applied.
	ConflictError = protocol.ConflictError

	// UnknownError describes an unknown outcome: a write was sent, and what the resource holds now proves neither that
	// it was applied nor that it was not. Its method Resolve asks again.
	UnknownError = azerr.UnknownError

	// NotFoundError names a resource that does not exist.
	NotFoundError = protocol.NotFoundError
)

var (
	// ErrConflict means that the resource is not what the caller assumed, and that the change was not applied. The
	// error in the chain is a *ConflictError with both ETags.
	ErrConflict = azerr.ErrConflict

	// ErrExists means that a create found the resource already there. It is a conflict too: errors.Is(err, ErrConflict)
	// holds.
	ErrExists = azerr.ErrExists

	// ErrNotFound means that the resource does not exist and that the call was not asked to create it.
	ErrNotFound = azerr.ErrNotFound

	// ErrOutcomeUnknown means that the write may or may not have been applied, and that neither could be proved. The
	// error in the chain is an *UnknownError, whose Resolve asks again later. The package README lists the
	// cases.
	ErrOutcomeUnknown = azerr.ErrOutcomeUnknown

	// ErrFenced means that a later holder of the lock has written, or has claimed the resource, and that nothing was
	// written. The error in the chain is a *fence.Error with both tokens.
	ErrFenced = fence.ErrFenced

	// ErrSkip is returned by a change function to leave the resource as it is. Update then succeeds with
	// Changed == false.
	ErrSkip = protocol.ErrSkip
)

// The values of Confirm.
const (
	// ConfirmByPath believes a conflict if nothing between the client and the service can have delivered the request
	// twice: the connection uses TLS to one of the service's own domains (core.windows.net, core.chinacloudapi.cn,
	// core.usgovcloudapi.net, storage.azure.net), or it is on the loopback interface. Then the change was not applied.
	// On other paths (plain HTTP, a custom domain, a front door) the outcome is unknown. Where a company inspects TLS with
	// certificates of its own, an intermediary terminates the connection unseen, as does a proxy on the loopback
	// interface: ConfirmAlways is for these.
	ConfirmByPath = protocol.ConfirmByPath

	// ConfirmAlways takes a conflict without a proof for an unknown outcome.
	ConfirmAlways = protocol.ConfirmAlways

	// ConfirmNever believes every conflict.
	ConfirmNever = protocol.ConfirmNever
)

// Defaults of SendOptions.
const (
	// DefaultLineageSize is the number of recent writes that a lineage holds if SendOptions.LineageSize is 0.
	DefaultLineageSize = protocol.DefaultLineageSize

	// DefaultMinRate is the slowest transfer, in bytes per second, that a try waits for if SendOptions.MinRate is 0.
	DefaultMinRate = protocol.DefaultMinRate
)

// Where a resource stores its lineage and its operations, and how long it remembers them.
const (
	// LineageKey is the name under which a resource's lineage is stored: the key of a blob's metadata, or the name of a
	// string property of a table entity.
	LineageKey = protocol.LineageKey

	// OperationsKey is the name under which the callers' operations are stored. It is present only if an OperationID
	// was used.
	OperationsKey = protocol.OperationsKey

	// OperationsKept is the largest number of operations that a resource remembers.
	OperationsKept = protocol.OperationsKept

	// OperationAge is how long a resource remembers an operation, by the clocks of the writers.
	OperationAge = protocol.OperationAge
)

// EarlierRuns returns, inside a change function, how many times the change has run before: 0 in the first run. Elsewhere it
// returns 0.
func EarlierRuns(ctx context.Context) int { return protocol.EarlierRuns(ctx) }

// BaseOf returns, inside a change function, the version that the change runs on. Elsewhere it returns the zero State.
func BaseOf(ctx context.Context) State { return protocol.BaseOf(ctx) }
