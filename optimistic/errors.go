package optimistic

import (
	"errors"
	"fmt"

	"github.com/azconc/azconc/pkg/azerr"
	"github.com/azconc/azconc/pkg/fence"
)

var (
	// ErrConflict means that the resource is not what the caller assumed, and that the change was not applied. The
	// error in the chain is a *[ConflictError] with both ETags.
	ErrConflict = azerr.ErrConflict

	// ErrExists means that a create found the resource already there. It is a conflict too: errors.Is(err, ErrConflict)
	// holds.
	ErrExists = azerr.ErrExists

	// ErrNotFound means that the resource does not exist and that the call was not asked to create it.
	ErrNotFound = azerr.ErrNotFound

	// ErrOutcomeUnknown means that the write may or may not have been applied, and that neither could be proved. The
	// error in the chain is an *[UnknownError], whose Resolve asks again later. The package README lists the
	// cases.
	ErrOutcomeUnknown = azerr.ErrOutcomeUnknown

	// ErrFenced means that a later holder of the lock has written, or has claimed the resource, and that nothing was
	// written. The error in the chain is a *[fence.Error] with both tokens.
	ErrFenced = fence.ErrFenced

	// ErrSkip is returned by a change function to leave the resource as it is. [Update] then succeeds with
	// Changed == false.
	ErrSkip = errors.New("left as it is")
)

// The errors that name a resource are those of package azerr, which the other packages of azconc return too.
type (
	// ConflictError describes a conflict: the operation, the resource, the reason, and the ETags expected and found.
	// The change was not applied.
	ConflictError = azerr.ConflictError

	// UnknownError describes an unknown outcome: a write was sent, and what the resource holds now proves neither that
	// it was applied nor that it was not. Its method Resolve asks again.
	UnknownError = azerr.UnknownError

	// NotFoundError names a resource that does not exist.
	NotFoundError = azerr.NotFoundError
)

// TypeError means that a blob is of another type than the operation writes. Nothing was written. The service refuses
// some operations on a blob of another type (409 InvalidBlobType); an emulator would replace an append or page blob by
// a block blob.
type TypeError struct {
	Type string // the type of the blob: "BlockBlob", "AppendBlob" or "PageBlob"
	Want string // the type that the operation writes
}

// Error names both types, and the operations that suit the blob.
func (e *TypeError) Error() string {
	return fmt.Sprintf("it is %s, and this operation writes %s: %s", typeNames[e.Type], typeNames[e.Want], typeWays[e.Type])
}

var typeNames = map[string]string{"BlockBlob": "a block blob", "AppendBlob": "an append blob", "PageBlob": "a page blob"}

// typeWays names the operations that change the content of a blob of each type.
var typeWays = map[string]string{
	"BlockBlob":  "update or replace it as a block blob, or delete it first",
	"AppendBlob": "append to it, or delete it first",
	"PageBlob":   "write its pages, or delete it first",
}
