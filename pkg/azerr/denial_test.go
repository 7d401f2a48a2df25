package azerr

import (
	"net/http"
	"testing"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore"
)

func TestEveryDenialIsARefusalOfTheCaller(t *testing.T) {
	for code, want := range denials {
		err := &azcore.ResponseError{StatusCode: http.StatusForbidden, ErrorCode: code}
		if got := DenialOf(err); got != want || got == NotDenied {
			t.Errorf("%s: %v, want %v", code, got, want)
		}
	}
	for _, code := range []string{"ContainerNotFound", "LeaseIdMissing", ""} {
		if got := DenialOf(&azcore.ResponseError{StatusCode: http.StatusForbidden, ErrorCode: code}); got != NotDenied {
			t.Errorf("%q: %v, want none", code, got)
		}
	}
	if DenialOf(nil) != NotDenied {
		t.Error("nil is a denial")
	}
}

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
