package protocol

import (
	"context"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore"
)

// State is the version of a resource without its value, as a read or a look found it.
type State struct {
	Exists       bool
	ETag         azcore.ETag // empty if the resource does not exist
	LastModified time.Time   // by the service's clock; zero if not known
	Created      time.Time   // when the resource was created, by the service's clock; zero if not known
	Lineage      Lineage

	decided *decision // see Decide
	date    time.Time // of the response, see Dated
}

// Result has the fields of optimistic.Result, so that one converts to the other.
type Result struct {
	Changed        bool
	Created        bool
	AlreadyApplied bool
	ETag           azcore.ETag
	BaseETag       azcore.ETag
	WriteID        string

	Attempts  int
	Conflicts int
	Foreign   int
	Ambiguous int
	Resolved  int
	Requests  int
	Folded    int
	Elapsed   time.Duration
}

// run is what a change can ask about its run.
type run struct {
	earlier int
	base    State
}

type runKey struct{}

// WithRun returns a context in which EarlierRuns returns n, and BaseOf base. A call passes it to the change function.
func WithRun(ctx context.Context, n int, base State) context.Context {
	return context.WithValue(ctx, runKey{}, run{n, base})
}

// EarlierRuns returns, inside a change function, how many times the change has run before.
func EarlierRuns(ctx context.Context) int {
	r, _ := ctx.Value(runKey{}).(run)
	return r.earlier
}

// BaseOf returns, inside a change function, the version that the change runs on.
func BaseOf(ctx context.Context) State {
	r, _ := ctx.Value(runKey{}).(run)
	return r.base
}
