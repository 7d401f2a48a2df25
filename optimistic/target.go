package optimistic

import "context"

// Version is a value and the version at which it was read.
type Version[T any] struct {
	State
	Value T // belongs to the caller

	// Carry belongs to the target: it holds the parts of the resource that a write has to send back so that they are
	// preserved.
	Carry any
}

// Target is a value that can be read together with its version and written back on a condition. Update, Read, Create,
// Replace and Delete handle retries, waiting and ambiguous responses; a target only knows its service.
//
// Every method sends its requests with the SDK's retries off and calls CountRequest once before each, so that
// Result.Requests is exact. Methods must be safe for concurrent use. A target that wraps another must have a method
// Unwrap() any that returns it, or embed it, so that operations on a blob's metadata and tags are not confused with
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
	// calls neither method: then the outcome after a lost response remains unknown, a conflict is returned without
	// confirmation, and an OperationID is refused. The returned Write sends the identical request each time it is
	// called. A nil Write means that value equals that of base.
	Prepare(base *Version[T], value T, lineage Lineage, c Conditions) (Write, error)

	// Remove returns the deletion of base, on the condition of its ETag; an empty ETag deletes any version.
	Remove(base State, c Conditions) (Write, error)
}
