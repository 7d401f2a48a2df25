package azerr

import (
	"fmt"
	"net/http"
	"net/url"
	"strings"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore"
	"github.com/Azure/azure-sdk-for-go/sdk/azcore/policy"
	"github.com/Azure/azure-sdk-for-go/sdk/azcore/runtime"
)

// ForeignError reports a response that did not come from Azure Storage: a captive portal's login page, for instance, or a
// redirect. For a write it proves nothing, so its outcome is ambiguous. The SDK does not send the request again.
type ForeignError struct {
	Host        string // that the request was sent to
	Status      int
	ContentType string
	Server      string // the Server header; may be empty
	Redirect    string // the host that the request was redirected to, whether or not the client went there; may be empty

	cut bool // it is the service's, and its content is missing
}

// Error names the host, what was answered and the way out. It has no query, which may be a shared access signature.
func (e *ForeignError) Error() string {
	text := strings.TrimSpace(fmt.Sprintf("%d %s", e.Status, http.StatusText(e.Status)))
	if e.ContentType != "" {
		text += ", " + e.ContentType
	}
	if e.Server != "" {
		text += ", server " + e.Server
	}
	of := ""
	if e.Host != "" {
		of = " of " + e.Host
	}
	switch {
	case e.Redirect != "":
		return fmt.Sprintf("the response%s (%s) redirects to %s, which Azure Storage never does; %s", of, text, e.Redirect, foreignWay)
	case e.cut:
		return fmt.Sprintf("the response%s (%s) has no content, which Azure Storage always sends here; %s", of, text, foreignWay)
	}
	return fmt.Sprintf("the response%s (%s) %s; %s", of, text, strings.TrimPrefix(foreignText, "it "), foreignWay)
}

// NonRetriable keeps the SDK from sending the request again: whether that is harmless is not known here, and a login page does
// not go away within a second.
func (e *ForeignError) NonRetriable() {}

const (
	foreignText = "it did not come from Azure Storage: it lacks x-ms-request-id and x-ms-version"
	foreignWay  = "a proxy or captive portal is in between: sign in to the network, or check HTTPS_PROXY, NO_PROXY and the endpoint"
)

// Policy is for the clients of a program that reads by the SDK directly. It lets no response through that is not the service's:
// the error is a *ForeignError instead. The SDK takes the login page of a captive portal, with status 200, for an empty list. Pass
// it as one of the PerRetryPolicies:
//
//	azblob.NewClient(url, credential, &azblob.ClientOptions{ClientOptions: policy.ClientOptions{
//		PerRetryPolicies: []policy.Policy{azerr.Policy{}}}})
//
// A response that was redirected is no answer, because net/http turns a PUT into a GET when it follows a redirect. Nor does the
// policy let the Referer tell the other host a shared access signature. To follow none at all, the client also needs a Transport
// whose CheckRedirect returns http.ErrUseLastResponse.
//
// The packages of this module have their own check for the requests that they send. Failures without a name are left to Classify.
type Policy struct{}

// Do sends the request, and returns a *ForeignError if the response is not the service's.
func (Policy) Do(r *policy.Request) (*http.Response, error) {
	raw := r.Raw()
	asked := *raw.URL
	if strings.Contains(asked.RawQuery, "sig=") && raw.Header.Get("Referer") == "" {
		raw.Header.Set("Referer", NoReferer)
	}
	response, err := r.Next()
	if err != nil {
		return response, err
	}
	switch foreign, final := FromService(response), response.Request; {
	case foreign != nil && (redirected(response) != nil || response.StatusCode < http.StatusBadRequest && response.StatusCode != http.StatusNotModified):
		runtime.Drain(response)
		return response, foreign
	case final != nil && final.URL != nil && (final.Method != raw.Method || final.URL.Host != asked.Host || final.URL.Path != asked.Path):
		runtime.Drain(response)
		return response, &ForeignError{Host: asked.Host, Status: response.StatusCode, Redirect: final.URL.Host}
	case response.StatusCode == http.StatusOK && wantsContent(raw, response):
		if body, err := runtime.Payload(response); err == nil && len(body) == 0 {
			return response, &ForeignError{Host: asked.Host, Status: response.StatusCode, ContentType: response.Header.Get("Content-Type"), cut: true}
		}
	}
	return response, nil
}

// NoReferer is the Referer of a request whose URL is nobody's business (RFC 9110, section 10.1.3). net/http would tell the URL,
// shared access signature included, to the host that it is redirected to.
const NoReferer = "about:blank"

// wantsContent reports whether the service's success has a document, which the SDK has read to its end by now: the SDK takes one
// without content for an empty list. Content of blobs and files, which may be empty, comes with its type.
func wantsContent(r *http.Request, response *http.Response) bool {
	if r.Method != http.MethodGet {
		return false
	}
	switch query := r.URL.Query(); query.Get("comp") {
	case "acl", "blocklist", "list", "listhandles", "pagelist", "rangelist", "stats", "tags":
		return true
	case "properties":
		return query.Get("restype") == "service"
	}
	ofTable := strings.HasPrefix(r.Header.Get("Accept"), "application/json")
	ofBlobOrFile := response.Header.Get("x-ms-blob-type")+response.Header.Get("x-ms-type") != ""
	return ofTable || strings.HasSuffix(r.URL.Path, "/messages") && !ofBlobOrFile
}

// FromService returns nil if response has a header that Azure Storage sets on every response, success or failure, and
// a *ForeignError otherwise. The headers are x-ms-request-id and x-ms-version (REST: "Status and error codes", "Common
// response headers"); one of them is enough, because an intermediary may drop the other. A response to a request that the
// client was redirected to is none of the service's to what was asked. The SDK checks neither.
func FromService(response *http.Response) error {
	if !foreign(response) && redirected(response) == nil {
		return nil
	}
	e := &ForeignError{Status: response.StatusCode, ContentType: response.Header.Get("Content-Type"), Server: response.Header.Get("Server")}
	if r := response.Request; r != nil && r.URL != nil {
		e.Host = r.URL.Host
	}
	if to := redirected(response); to != nil {
		e.Redirect, e.Host = e.Host, to.URL.Host
	} else if to, err := url.Parse(response.Header.Get("Location")); err == nil && response.StatusCode/100 == 3 {
		e.Redirect = to.Host
		if e.Redirect == "" {
			e.Redirect = e.Host
		}
	}
	return e
}

func foreign(response *http.Response) bool {
	return response != nil && response.Header.Get("x-ms-request-id") == "" && response.Header.Get("x-ms-version") == ""
}

// redirected returns the first request if the client was redirected from there to the response, and nil if it was not.
func redirected(response *http.Response) (first *http.Request) {
	for response != nil && response.Request != nil && response.Request.Response != nil {
		response = response.Request.Response
		first = response.Request
	}
	return first
}

// foreignFailure reports whether an error that the SDK made of a response is not the service's. The service's own names
// a code, in a header or in the body.
func foreignFailure(r *azcore.ResponseError) bool {
	return r.ErrorCode == "" && foreign(r.RawResponse) || redirected(r.RawResponse) != nil
}

// foreignMeaning returns the meaning of a failure that an intermediary reported, given the meaning that its status has
// in a response of the service.
func foreignMeaning(response *http.Response, status int, m Outcome) Outcome {
	switch {
	case redirected(response) != nil:
		return unclear // it answers another request, whatever it says
	case status == http.StatusNotModified:
		return m // a cache responds so, and a read has no effect
	case status < http.StatusBadRequest:
		return unclear // a success, or a redirect: the service may or may not have received the request
	case m.Kind == Conflict, m.Kind == NotFound:
		return Outcome{} // it says nothing about the resource
	}
	return m
}
