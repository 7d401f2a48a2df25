package azerr

import (
	"fmt"
	"net/http"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore"
)

// ForeignError reports a response that did not come from Azure Storage, although its status says success: a captive
// portal's login page, for instance. For a write it proves nothing, so its outcome is ambiguous.
type ForeignError struct {
	Status      int
	ContentType string
	Server      string // the Server header; may be empty
}

func (e *ForeignError) Error() string {
	text := fmt.Sprintf("%d %s", e.Status, http.StatusText(e.Status))
	if e.ContentType != "" {
		text += ", " + e.ContentType
	}
	if e.Server != "" {
		text += ", server " + e.Server
	}
	return fmt.Sprintf("the response (%s) %s", text, foreignText)
}

const foreignText = "did not come from Azure Storage: it lacks x-ms-request-id and x-ms-version; a proxy or captive portal may be in between"

// FromService returns nil if response has a header that Azure Storage sets on every response, success or failure, and
// a *ForeignError otherwise. The headers are x-ms-request-id and x-ms-version (REST: "Status and error codes", "Common
// response headers"); one of them is enough, because an intermediary may drop the other. The SDK does not check them.
func FromService(response *http.Response) error {
	if !foreign(response) {
		return nil
	}
	return &ForeignError{Status: response.StatusCode, ContentType: response.Header.Get("Content-Type"), Server: response.Header.Get("Server")}
}

func foreign(response *http.Response) bool {
	return response != nil && response.Header.Get("x-ms-request-id") == "" && response.Header.Get("x-ms-version") == ""
}

// foreignFailure reports whether an error that the SDK made of a response is not the service's. The service's own names
// a code, in a header or in the body.
func foreignFailure(r *azcore.ResponseError) bool { return r.ErrorCode == "" && foreign(r.RawResponse) }

// foreignMeaning returns the meaning of a failure that an intermediary reported, given the meaning that its status has
// in a response of the service.
func foreignMeaning(status int, m meaning) meaning {
	switch {
	case status == http.StatusNotModified:
		return m // a cache responds so, and a read has no effect
	case status < http.StatusBadRequest:
		return unclear // a success, or a redirect that was followed: the service may or may not have received the request
	case m.kind == Conflict, m.kind == NotFound:
		return meaning{} // it says nothing about the resource
	}
	return m
}
