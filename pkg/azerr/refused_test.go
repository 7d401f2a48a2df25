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
		{"GET", "acct.file.core.windows.net", "Storage File Data Privileged Reader"},
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

// A receive hides messages, so that it needs more than a peek does. Who sends or receives need not be allowed to do everything else.
func TestARoleIsNamedForAMessage(t *testing.T) {
	for _, c := range []struct{ method, path, query, role string }{
		{"GET", "/orders/messages", "", "Storage Queue Data Message Processor"},
		{"GET", "/orders/messages", "peekonly=true", "Storage Queue Data Reader"},
		{"POST", "/orders/messages", "", "Storage Queue Data Message Sender"},
		{"DELETE", "/orders/messages/1", "popreceipt=r", "Storage Queue Data Message Processor"},
		{"PUT", "/orders/messages/1", "popreceipt=r", "Storage Queue Data Contributor"},
		{"DELETE", "/orders/messages", "", "Storage Queue Data Contributor"},
	} {
		err := tokenError(c.method, "acct.queue.core.windows.net", "AuthorizationPermissionMismatch")
		refused, ok := errors.AsType[*azcore.ResponseError](err)
		if !ok {
			t.Fatal(err)
		}
		refused.RawResponse.Request.URL.Path, refused.RawResponse.Request.URL.RawQuery = c.path, c.query
		if _, way := Explain(err); !strings.Contains(way, `"`+c.role+`"`) {
			t.Errorf("%s %s?%s: %q, want the role %s", c.method, c.path, c.query, way, c.role)
		}
	}
}

// TestNetworkRulesAreThoseOfTheAccount, also at its secondary endpoint, whose host has another first name.
func TestNetworkRulesAreThoseOfTheAccount(t *testing.T) {
	for _, host := range []string{"acct.blob.core.windows.net", "acct-secondary.blob.core.windows.net"} {
		if _, way := Explain(tokenError("GET", host, "AuthorizationFailure")); !strings.Contains(way, "--name acct --query") {
			t.Errorf("%s: %q", host, way)
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
