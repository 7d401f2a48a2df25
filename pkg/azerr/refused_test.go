package azerr

import (
	"errors"
	"net/http"
	"strings"
	"testing"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore"
)

// tokenError is the error of a request with a token.
func tokenError(method, host, code string) error {
	req, err := http.NewRequest(method, "https://"+host+"/jobs/a", nil)
	if err != nil {
		return err
	}
	req.Header.Set("Authorization", "Bearer x")
	return &azcore.ResponseError{StatusCode: 403, ErrorCode: code, RawResponse: &http.Response{
		StatusCode: 403, Request: req, Body: http.NoBody, Header: http.Header{"X-Ms-Version": {"2025-01-05"}, "X-Ms-Error-Code": {code}},
	}}
}

func TestARoleIsNamedForTheServiceAndTheRequest(t *testing.T) {
	for _, c := range []struct{ method, host, role string }{
		{"GET", "acct.blob.core.windows.net", "Storage Blob Data Reader"},
		{"PUT", "acct.blob.core.windows.net", "Storage Blob Data Contributor"},
		{"POST", "acct.table.core.windows.net", "Storage Table Data Contributor"},
		{"HEAD", "acct.queue.core.windows.net", "Storage Queue Data Reader"},
		{"PUT", "acct.file.core.windows.net", "Storage File Data Privileged Contributor"},
	} {
		why, way := Explain(tokenError(c.method, c.host, "AuthorizationPermissionMismatch"))
		if why != "the identity has no role that allows this" || !strings.Contains(way, `"`+c.role+`"`) {
			t.Errorf("%s %s: %q, %q, want the role %s", c.method, c.host, why, way, c.role)
		}
	}
	if why, _ := Explain(tokenError("GET", "acct.blob.core.windows.net", "AuthenticationFailed")); why != "the service does not accept the token" {
		t.Errorf("token: %q", why)
	}
}

// A receive hides messages, so that it needs more than a peek does.
func TestARoleIsNamedForAReceive(t *testing.T) {
	for query, role := range map[string]string{"": "Storage Queue Data Message Processor", "peekonly=true": "Storage Queue Data Reader"} {
		err := tokenError("GET", "acct.queue.core.windows.net", "AuthorizationPermissionMismatch")
		refused, ok := errors.AsType[*azcore.ResponseError](err)
		if !ok {
			t.Fatal(err)
		}
		refused.RawResponse.Request.URL.Path, refused.RawResponse.Request.URL.RawQuery = "/orders/messages", query
		if _, way := Explain(err); !strings.Contains(way, `"`+role+`"`) {
			t.Errorf("%q: %q, want the role %s", query, way, role)
		}
	}
}

// TestARoleIsNamedForTheClientWhereTheHostNamesNoService has requests to an endpoint with the account in its path.
func TestARoleIsNamedForTheClientWhereTheHostNamesNoService(t *testing.T) {
	for client, role := range map[string]string{"aztables": "Table", "azqueue": "Queue", "azblob": "Blob"} {
		err := tokenError("POST", "127.0.0.1:10002", "AuthorizationPermissionMismatch")
		refused, ok := errors.AsType[*azcore.ResponseError](err)
		if !ok {
			t.Fatal(err)
		}
		refused.RawResponse.Request.Header.Set("User-Agent", "azconc azsdk-go-"+client+"/v1.4.1 (go1.26; linux)")
		if _, way := Explain(err); !strings.Contains(way, "Storage "+role+" Data Contributor") {
			t.Errorf("%s: %q, want the role for %s", client, way, role)
		}
	}
}
