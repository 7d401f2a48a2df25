package optimistic

import (
	"context"
	"sync/atomic"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore"
)

// Target is a value that can be read together with its version and written back on a condition. Update, Read, Create,
// Replace and Delete handle retries, waiting and ambiguous responses; a target only knows its service.
//
// Every method sends its requests with the SDK's retries off and calls CountRequest once before each, so that
// Result.Requests is exact. Methods must be safe for concurrent use. A target that wraps one of this package's must
// have a method Unwrap() any that returns it, so that operations on a blob's metadata and tags are not confused with
// those on its content.
type Target[T any] interface {
	// Resource names the target by path, never by URL: a URL may carry a SAS.
	Resource() string

	// Read fetches the value and its version. If the resource does not exist, it returns a Version with Exists ==
	// false, and no error. The value belongs to the caller: it must not share memory with anything.
	Read(ctx context.Context) (*Version[T], error)

	// Look fetches the version without the value, in one request if the service can.
	Look(ctx context.Context) (State, error)

	// Prepare encodes value for a write that replaces base, on the condition of base's ETag (or of absence). The write
	// stores lineage.String() and, if it is not empty, lineage.OperationsString(). A target that cannot store them
	// calls neither: then a lost response remains unknown, a conflict is taken as it is, and an OperationID is refused.
	// The returned Write sends the identical request each time it is called. A nil Write means that value is what base
	// already holds.
	Prepare(base *Version[T], value T, lineage Lineage, c Conditions) (Write, error)

	// Remove returns the deletion of base, on the condition of its ETag; an empty ETag deletes any version.
	Remove(base State, c Conditions) (Write, error)
}

// Write sends one request. It returns the ETag that the request produced, or the service's error unchanged.
type Write func(ctx context.Context) (azcore.ETag, error)

// State is the version of a resource without its value.
type State struct {
	Exists       bool
	ETag         azcore.ETag
	LastModified time.Time // by the service's clock; zero if not known
	Created      time.Time // when the resource was created, by the service's clock; zero if not known
	Lineage      Lineage
}

// Version is a value together with the version it was read at.
type Version[T any] struct {
	State
	Value T

	// Carry is private to the target: what a write has to send so that everything else about the resource survives.
	Carry any
}

// Codec turns a value into the content of a blob and back.
type Codec[T any] interface {
	Encode(value T) ([]byte, error)
	Decode(data []byte) (T, error)
	// ContentType is the Content-Type of a blob that is created. An existing blob keeps its own.
	ContentType() string
}

type meterKey struct{}

type attemptKey struct{}

// meter counts the requests of one call. It is passed in the context, because a target outlives the calls that use it.
// It is atomic, because blocks are staged concurrently.
type meter struct{ requests atomic.Int64 }

// CountRequest counts one request, which is about to be sent, for the call that runs in ctx. Targets call it. Without a
// call in ctx it does nothing.
func CountRequest(ctx context.Context) {
	if m, ok := ctx.Value(meterKey{}).(*meter); ok {
		m.requests.Add(1)
	}
}

// Attempt returns, inside a change function, how often the change has been run before: 0 in the first run. Elsewhere it
// returns 0.
func Attempt(ctx context.Context) int {
	n, _ := ctx.Value(attemptKey{}).(int)
	return n
}
