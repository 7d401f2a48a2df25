package optimistic

import (
	"context"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore"

	"github.com/azconc/azconc/optimistic/internal/protocol"
	"github.com/azconc/azconc/optimistic/internal/sealed"
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
	Foreign   int           // those of them after which the next read found a change by a writer that keeps no lineage
	Ambiguous int           // tries after which it was open whether the write was applied
	Resolved  int           // ambiguous writes whose outcome was proved
	Requests  int           // requests sent
	Folded    int           // changes that shared the write; 0 outside a Document
	Elapsed   time.Duration // from the call to its end
}

// State is the version of a resource without its value.
type State struct {
	Exists       bool
	ETag         azcore.ETag // empty if the resource does not exist
	LastModified time.Time   // by the service's clock; zero if not known
	Created      time.Time   // when the resource was created, by the service's clock; zero if not known

	lineage protocol.Lineage
}

func stateOf(s protocol.State) State {
	return State{Exists: s.Exists, ETag: s.ETag, LastModified: s.LastModified, Created: s.Created, lineage: s.Lineage}
}

func (s State) base() protocol.State {
	return protocol.State{Exists: s.Exists, ETag: s.ETag, LastModified: s.LastModified, Created: s.Created, Lineage: s.lineage}
}

// Version is a value and the version at which it was read. A write over a version sends back what was read with it, so
// that everything else about the resource is preserved; over a Version that a caller has made, it is read first.
type Version[T any] struct {
	State
	Value T // belongs to the caller

	read    bool // by Read, with what belongs to the target
	carried any
}

func versionOf[T any](v *sealed.Version[T]) *Version[T] {
	return &Version[T]{State: stateOf(v.State), Value: v.Value, read: true, carried: sealed.Carried(v)}
}

func (v *Version[T]) base() *sealed.Version[T] {
	return sealed.Carry(&sealed.Version[T]{State: v.State.base(), Value: v.Value}, v.carried)
}

// EarlierRuns returns, inside a change function, how many times the change has run before: 0 in the first run. Elsewhere it
// returns 0.
func EarlierRuns(ctx context.Context) int { return protocol.EarlierRuns(ctx) }

// BaseOf returns, inside a change function, the version that the change runs on. Elsewhere it returns the zero State.
func BaseOf(ctx context.Context) State { return stateOf(protocol.BaseOf(ctx)) }
