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
