package azerr

import (
	"net/http"
	"testing"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore"
)

func TestAParentThatDoesNotExistIsNamed(t *testing.T) {
	for code, want := range map[string]string{
		"ContainerNotFound": "container", "TableNotFound": "table", "QueueNotFound": "queue", "ShareNotFound": "share",
		"BlobNotFound": "", "ResourceNotFound": "", "MessageNotFound": "",
	} {
		if got := Absent(&azcore.ResponseError{StatusCode: http.StatusNotFound, ErrorCode: code}); got != want {
			t.Errorf("%s: %q, want %q", code, got, want)
		}
	}
}

func TestEachPredicateKnowsItsCodes(t *testing.T) {
	for code, is := range map[string]func(error) bool{
		"BlobNotFound": NoBlob, "LeaseIdMissing": NeedsLeaseID, "LeaseNotPresentWithLeaseOperation": NotLeased, "SnapshotsPresent": HasSnapshots, "MessageNotFound": StaleReceipt, "PopReceiptMismatch": StaleReceipt,
	} {
		if !is(&azcore.ResponseError{ErrorCode: code}) || is(&azcore.ResponseError{ErrorCode: "InvalidInput"}) || is(nil) {
			t.Errorf("%s is not recognized, or something else is", code)
		}
	}
}
