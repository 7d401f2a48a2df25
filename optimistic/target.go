package optimistic

import (
	"context"
	"sync/atomic"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore"
)

// Target is something whose value can be read together with its version and written back on condition. Update, Read,
// Create, Replace and Delete own retries, waiting and ambiguous answers; a target only knows its service.
//
// Every method sends its requests with the SDK's own retries off and calls CountRequest once before each, so that
// Result.Requests is the bill. Methods must be safe for concurrent use. A target that wraps one of this package's has a
// method Unwrap() any that returns it: operations on a blob's metadata and tags are told from those on its content by it.
type Target[T any] interface {
	// Resource names the target by path, never by URL: a URL may carry a SAS.
	Resource() string

	// Read fetches value and version. A resource that does not exist is a Version with Exists == false, not an error.
	// The value belongs to the caller: nothing else may share memory with it.
	Read(ctx context.Context) (*Version[T], error)

	// Look fetches the version without the value, in one request if the service can.
	Look(ctx context.Context) (State, error)

	// Prepare encodes value for a write that replaces base, conditional on base's ETag (or on absence). The write stores
	// lineage.String() and, if it is not empty, lineage.OperationsString(). A target without a place for them encodes
	// neither: then a lost response stays unknown, a conflict is taken for what it is, and an OperationID is refused.
	// The returned Write sends the identical request each time it is called. A nil Write means that value is what base
	// already holds.
	Prepare(base *Version[T], value T, lineage Lineage, c Conditions) (Write, error)

	// Remove returns the deletion of base, conditional on its ETag; an empty ETag means whatever is there.
	Remove(base State, c Conditions) (Write, error)
}

// Write sends one request and returns the ETag it produced, or the service's error untouched.
type Write func(ctx context.Context) (azcore.ETag, error)

// State is the version of a resource without its value.
type State struct {
	Exists       bool
	ETag         azcore.ETag
	LastModified time.Time // of the service's clock; zero when the service does not tell
	Created      time.Time // when the resource began to exist, by the service's clock; zero when not known
	Lineage      Lineage
}

// Version is a value together with the version it was read at.
type Version[T any] struct {
	State
	Value T

	// Carry is the target's own: what a write has to bring along so that everything else about the resource survives.
	Carry any
}

// Codec turns a value into the content of a blob and back.
type Codec[T any] interface {
	Encode(value T) ([]byte, error)
	Decode(data []byte) (T, error)
	// ContentType is the Content-Type of a blob that is created; an existing blob keeps the one it has.
	ContentType() string
}

type meterKey struct{}

type attemptKey struct{}

// meter counts the requests of one call. It is reached through the context, because a target outlives the calls that
// use it, and it is atomic, because blocks are staged side by side.
type meter struct{ requests atomic.Int64 }

// CountRequest tells the call that runs in ctx that one request is about to be sent. Targets call it; without a call
// in ctx it does nothing.
func CountRequest(ctx context.Context) {
	if m, ok := ctx.Value(meterKey{}).(*meter); ok {
		m.requests.Add(1)
	}
}

// Attempt returns, inside a change function, how often the change has been run before: 0 for the first run. It returns
// 0 outside.
func Attempt(ctx context.Context) int {
	n, _ := ctx.Value(attemptKey{}).(int)
	return n
}
