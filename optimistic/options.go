package optimistic

import (
	"errors"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore"

	"github.com/azconc/azconc/optimistic/internal/protocol"
	"github.com/azconc/azconc/optimistic/internal/sealed"
	"github.com/azconc/azconc/pkg/observe"
	"github.com/azconc/azconc/pkg/ptr"
	"github.com/azconc/azconc/pkg/retry"
)

// DefaultMinRate is the slowest transfer, in bytes per second, that a try waits for if SendOptions.MinRate is 0.
const DefaultMinRate = 64 << 10

// Where a resource stores its lineage and its operations, and how long it remembers them.
const (
	// LineageKey is the name under which a resource's lineage is stored: the key of a blob's metadata, or the name of a
	// string property of a table entity.
	LineageKey = "azconclineage"

	// OperationsKey is the name under which the callers' operations are stored. It is present only if an OperationID
	// was used.
	OperationsKey = "azconcoperations"

	// OperationsKept is the largest number of operations that a resource remembers.
	OperationsKept = 256

	// OperationAge is how long a resource remembers an operation, by the clocks of the writers.
	OperationAge = 7 * 24 * time.Hour
)

// SendOptions tunes how transient faults of a single read or write are handled. All operations take it. The zero value is
// the default.
type SendOptions struct {
	// NoLineage is for readers that cannot tolerate an unexpected metadata key: no lineage is written, and a conflict after
	// a lost response is always ErrOutcomeUnknown. The operations that the resource remembers are kept.
	NoLineage bool

	// Tries bounds how many times one request is sent, the first time included; negative means no bound. Defaults to 6.
	Tries int

	// TryTimeout ends a request that gets no response; negative means no bound. Defaults to 30 s, the service's own
	// limit for most operations. The time that blob content takes is added, see MinRate.
	TryTimeout time.Duration

	// MinRate is the slowest transfer to wait for, in bytes per second: a request may take TryTimeout plus the time
	// that the content it sends or receives takes at this rate. Negative adds nothing. Defaults to DefaultMinRate, 64
	// KiB/s: a request with 36 MB of content may take 10 minutes.
	MinRate int64

	// Recreate sends a create again if its response was lost and the resource is not there. Set it only if no other
	// client deletes the resource. Otherwise the resource may be created twice: the first create was applied, and
	// another client has consumed the resource. Defaults to false: azconc looks for the resource until Tries are spent,
	// and then the error is ErrOutcomeUnknown.
	Recreate bool

	// Pause is the wait between tries. The service's Retry-After, but no more than a minute of it, is a lower bound. Defaults
	// to full jitter of 200 ms, doubling, at most 10 s.
	Pause retry.Backoff

	// Grace bounds the last look at the resource if ctx ends while the outcome of a write is open. Defaults to 2 s.
	Grace time.Duration

	// ConfirmConflicts says which conflicts are believed that the lineage can neither confirm nor refute, because a
	// foreign writer has replaced it or the resource was deleted. Defaults to ConfirmByPath.
	ConfirmConflicts Confirm

	// Hooks observe the operation: a span for it and for each of its requests, and events for conflicts, lost responses and
	// their resolution, which are normal. Defaults to none.
	Hooks observe.Hooks
}

// Confirm says whether a conflict needs a proof. An intermediary that terminates the connection may deliver a write twice,
// and pass on the refusal of the second delivery although the first was applied. What a read after the conflict finds in the
// lineage decides in every case. Confirm decides about the conflicts for which it proves nothing, and about those of a call that
// ends before that read.
type Confirm uint8

// The values of Confirm.
const (
	// ConfirmByPath trusts a conflict if nothing between the client and the service can have delivered the request
	// twice: the connection uses TLS to one of the service's own domains (core.windows.net, core.chinacloudapi.cn,
	// core.usgovcloudapi.net, storage.azure.net), or it is on the loopback interface. Then the change was not applied.
	// On other paths (plain HTTP, a custom domain, a front door) the outcome is unknown. Where a company inspects TLS with
	// certificates of its own, an intermediary terminates the connection unseen, as does a proxy on the loopback
	// interface: ConfirmAlways is for these.
	//
	// On such a path a write to a blob or a container whose metadata leave less than 400 bytes for the lineage is refused
	// before it is sent, because nothing would prove what becomes of it. The same holds for ConfirmAlways on every path.
	ConfirmByPath Confirm = iota

	// ConfirmAlways takes a conflict without a proof for an unknown outcome.
	ConfirmAlways

	// ConfirmNever trusts every conflict.
	ConfirmNever
)

// call begins an operation with these options. The error names the field that is out of range.
func (o SendOptions) call(op, resource string) (*protocol.Call, error) {
	s, err := o.settings()
	if err != nil {
		return nil, err
	}
	return protocol.NewCall(op, resource, s), nil
}

// settings returns the options as the protocol has them, with their defaults filled in.
func (o SendOptions) settings() (protocol.Settings, error) {
	return protocol.Settings{
		NoLineage: o.NoLineage, Tries: o.Tries, TryTimeout: o.TryTimeout, MinRate: o.MinRate, Recreate: o.Recreate,
		Pause: o.Pause, Grace: o.Grace, Confirm: protocol.Confirm(o.ConfirmConflicts), Hooks: o.Hooks,
	}.WithDefaults()
}

// The packages below this one begin their operations by it.
func init() {
	sealed.Begin = func(o any, op, resource string) (*protocol.Call, error) { return o.(SendOptions).call(op, resource) }
}

// UpdateOptions tunes Update. The zero value is the default.
type UpdateOptions struct {
	// Conditions are checked in addition to the version that was read. With IfMatch the resource must be at that
	// version, and a conflict is final. IfTags and LeaseID are sent with the write. IfNoneMatch and the dates are
	// evaluated on each version that was read, after the change has run on it; if one does not hold, the error is a
	// *ConflictError. Since the write replaces that very version, they are as strict as if the service had checked them.
	Conditions Conditions

	// OperationID makes the change idempotent across processes. If the resource remembers the operation, the change is
	// not run and AlreadyApplied is set; this is checked before any condition, so that a rerun succeeds even if its IfMatch is
	// stale. Of several concurrent calls one applies the operation.
	//
	// A resource remembers the last OperationsKept (256) operations that are no older than OperationAge (7 days, by the
	// writers' clocks), and index tags the last 7, of any age. A change that must never be repeated, however late, needs package
	// once, below idempotent. The operations are forgotten if a writer outside azconc replaces all metadata, or if an
	// unconditional Upload replaces the blob. The same id on a blob's content, metadata and tags is three operations.
	//
	// A change that leaves the value unchanged is still written, so that the operation is remembered; ErrSkip writes
	// nothing. A write is refused if the metadata, or the entity, has no room for all operations in the window, which
	// take up to 3.4 KB of the 8 KB. Targets that cannot store operations (headers, pages, access policies)
	// refuse an OperationID. Defaults to none.
	OperationID string

	// Create runs the change on T's zero value if the resource does not exist. Defaults to false: ErrNotFound.
	Create bool

	// DryRun runs the change and reports the result that it would have, without sending the write. Defaults to false.
	DryRun bool

	// Attempts bounds how many times the change is run; negative means no bound. Defaults to 1,000: beside 64 writers that
	// keep no lineage and do not wait, an update needs 64 on average.
	Attempts int

	// Elapsed bounds the time spent on conflicts, from the call to the last attempt, without that of requests that had no
	// answer; negative means no bound. Defaults to 30 s.
	Elapsed time.Duration

	// Backoff spaces the attempts after a conflict if the lineage does not show how many others are writing. Defaults to
	// full jitter of two round trips, doubling, at most 2 s.
	Backoff retry.Backoff

	SendOptions

	_ struct{}
}

// budget bounds the attempts.
func (o UpdateOptions) budget() retry.Budget {
	return protocol.ConflictBudget(o.Attempts, o.Elapsed, o.Backoff)
}

// validated returns the options, or an error that names the field that is out of range.
func (o *UpdateOptions) validated() (UpdateOptions, error) {
	out := ptr.Value(o)
	if out.OperationID != "" && out.NoLineage {
		return out, errors.New("UpdateOptions.OperationID: it is remembered in the lineage, which NoLineage turns off")
	}
	c := out.Conditions
	if c.IfMatch == azcore.ETagAny {
		out.Conditions.IfMatch = "" // an update without Create requires an existing resource anyway
		if out.Create {
			return out, errors.New(`UpdateOptions: IfMatch "*" asks for an existing resource, Create for a missing one; give one of them`)
		}
	}
	return out, c.Validate()
}

// ReadOptions tunes Read. The zero value is the default.
type ReadOptions struct {
	SendOptions

	_ struct{}
}

// WriteOptions tunes Create, Replace and Delete. The zero value is the default.
type WriteOptions struct {
	// Conditions are checked in addition to the version. Only IfTags and LeaseID can be given: the version is the
	// function's argument. Create takes no LeaseID, see Conditions.
	Conditions Conditions

	// OperationID makes the write idempotent across processes, as in UpdateOptions. Delete ignores it, because a
	// deleted resource remembers nothing. Defaults to none.
	OperationID string

	SendOptions

	_ struct{}
}

// validated returns the options, or an error that names the field that is out of range.
func (o *WriteOptions) validated() (WriteOptions, error) {
	out := ptr.Value(o)
	if !out.Conditions.carried() {
		return out, errors.New("WriteOptions.Conditions: the version is given as an argument; only IfTags and LeaseID can be given here")
	}
	if out.OperationID != "" && out.NoLineage {
		return out, errors.New("WriteOptions.OperationID: it is remembered in the lineage, which NoLineage turns off")
	}
	return out, nil
}
