package anyblob

import (
	"fmt"

	"github.com/Azure/azure-sdk-for-go/sdk/storage/azblob/blob"
)

// TypeError means that the blob is of another type than the operation writes. Nothing was written. The service refuses
// some operations on a blob of another type (409 InvalidBlobType); an emulator would replace an append or page blob by
// a block blob.
type TypeError struct {
	Type blob.BlobType // the type of the blob
	Want blob.BlobType // the type that the operation writes
}

// Error names both types, and the operations that suit the blob.
func (e *TypeError) Error() string {
	return fmt.Sprintf("it is %s, and this operation writes %s: %s", typeNames[e.Type], typeNames[e.Want], typeWays[e.Type])
}

var typeNames = map[blob.BlobType]string{
	blob.BlobTypeBlockBlob: "a block blob", blob.BlobTypeAppendBlob: "an append blob", blob.BlobTypePageBlob: "a page blob",
}

// typeWays names the operations that change the content of a blob of each type.
var typeWays = map[blob.BlobType]string{
	blob.BlobTypeBlockBlob:  "update or replace it as a block blob, or delete it first",
	blob.BlobTypeAppendBlob: "append to it, or delete it first",
	blob.BlobTypePageBlob:   "write its pages, or delete it first",
}

// CheckType refuses a blob of another type than want. If the service does not name the type, the blob is accepted.
func CheckType(is *blob.BlobType, want blob.BlobType) error {
	if is == nil || *is == want {
		return nil
	}
	return &TypeError{Type: *is, Want: want}
}
