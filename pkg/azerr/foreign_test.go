package azerr

import (
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore"
)

// TestAResponseOfAnIntermediaryProvesNothing: no status of an intermediary says what became of the resource.
func TestAResponseOfAnIntermediaryProvesNothing(t *testing.T) {
	for status, want := range map[int]string{
		200: "unknown ambiguous transient", 201: "unknown ambiguous transient", 204: "unknown ambiguous transient", 302: "unknown ambiguous transient",
		304: "conflict not modified", 400: "bad input", 403: "unauthorised", 404: "other", 407: "bad input", 409: "other", 412: "other",
		413: "bad input", 429: "throttled ambiguous transient", 500: "unknown ambiguous transient", 502: "unknown ambiguous transient",
		503: "throttled ambiguous transient", 504: "unknown ambiguous transient",
	} {
		raw := &http.Response{StatusCode: status, Header: http.Header{"Content-Type": {"text/html"}}, Body: io.NopCloser(strings.NewReader("<html>"))}
		failure := fmt.Errorf("put c/b: %w", &azcore.ResponseError{StatusCode: status, RawResponse: raw})
		if got := words(Classify(failure)); got != want {
			t.Errorf("%d is %q, want %q", status, got, want)
		}
		if text := Summary(failure); !strings.Contains(text, fmt.Sprint("put c/b: ", status)) || !strings.Contains(text, "did not come from Azure Storage") {
			t.Errorf("%d: Summary = %q", status, text)
		}
	}
}

func TestAResponseOfTheServiceHasItsHeaders(t *testing.T) {
	for _, tt := range []struct {
		header string
		ours   bool
	}{{"x-ms-request-id", true}, {"x-ms-version", true}, {"Server", false}} {
		raw := &http.Response{StatusCode: 200, Header: http.Header{"Content-Type": {"text/html"}}}
		raw.Header.Set(tt.header, "gateway")
		err := FromService(raw)
		if (err == nil) != tt.ours {
			t.Errorf("with %s: %v", tt.header, err)
		}
		if err == nil {
			continue
		}
		if got := words(Classify(fmt.Errorf("get: %w", err))); got != "unknown ambiguous transient" {
			t.Errorf("Classify = %q", got)
		}
		want := "the response (200 OK, text/html, server gateway) did not come from Azure Storage: it lacks x-ms-request-id and x-ms-version; a proxy or captive portal is in between: sign in to the network, or check HTTPS_PROXY, NO_PROXY and the endpoint"
		if f, ok := errors.AsType[*ForeignError](err); !ok || f.Status != 200 || err.Error() != want {
			t.Errorf("err = %v", err)
		}
	}
	if err := FromService(nil); err != nil {
		t.Errorf("without a response: %v", err)
	}
}
