package denial

import (
	"net/http"
	"testing"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore"
)

func TestEveryDenialIsARefusalOfTheCaller(t *testing.T) {
	for code, want := range denials {
		err := &azcore.ResponseError{StatusCode: http.StatusForbidden, ErrorCode: code}
		if got := Of(err); got != want || got == None {
			t.Errorf("%s: %v, want %v", code, got, want)
		}
	}
	for _, code := range []string{"ContainerNotFound", "LeaseIdMissing", ""} {
		if got := Of(&azcore.ResponseError{StatusCode: http.StatusForbidden, ErrorCode: code}); got != None {
			t.Errorf("%q: %v, want none", code, got)
		}
	}
	if Of(nil) != None {
		t.Error("nil is a denial")
	}
}
