package azerr

import (
	"io"
	"net/http"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore"
)

// TestARefusalNamesItsCauseAndTheWayOut: the reasons were known to the command alone; a program got the service's code.
func TestARefusalNamesItsCauseAndTheWayOut(t *testing.T) {
	const signed = "?sv=2025-01-05&sp=r&ss=q&srt=s&sip=10.0.0.1&sig=c2VjcmV0"
	now := time.Now().UTC()
	for _, tt := range []struct {
		name, code, query, auth string
		date                    time.Time
		why, way                string
	}{
		{"a wrong key", "AuthenticationFailed", "", "SharedKey acct:x", now, "does not accept the account key", "az storage account keys list"},
		{"a clock that is wrong", "AuthenticationFailed", "", "SharedKey acct:x", now.Add(-time.Hour), "clock is wrong by 1h0m", "set the clock"},
		{"a SAS that has expired", "AuthenticationFailed", signed + "&se=1999-12-31T12:00:00Z", "", now, "expired on 1999-12-31T12:00:00Z", "create a new one"},
		{"a SAS of tomorrow", "AuthenticationFailed", signed + "&st=2999-12-31", "", now, "not valid before 2999-12-31", "starts earlier"},
		{"a wrong SAS", "AuthenticationFailed", signed, "", now, "does not accept the SAS", "is it complete"},
		{"a token of another tenant", "InvalidAuthenticationInfo", "", "Bearer x", now, "does not accept the token", "tenant"},
		{"a SAS without the permission", "AuthorizationPermissionMismatch", signed, "", now, `grants "r"`, "missing permission"},
		{"an identity without a role", "AuthorizationPermissionMismatch", "", "Bearer x", now, "no role", `"Storage Blob Data Contributor"`},
		{"another type of resource", "AuthorizationResourceTypeMismatch", signed, "", now, `covers "s"`, "create one for s"},
		{"another service", "AuthorizationServiceMismatch", signed, "", now, "does not cover the blob service", "this service"},
		{"another address", "AuthorizationSourceIPMismatch", signed, "", now, `covers "10.0.0.1"`, "this address"},
		{"plain HTTP", "AuthorizationProtocolMismatch", signed, "", now, "HTTPS only", "https://"},
		{"network rules", "AuthorizationFailure", "", "Bearer x", now, "network rules", "--name acct "},
		{"no keys", "KeyBasedAuthenticationNotPermitted", "", "SharedKey acct:x", now, "neither keys nor SAS", "Entra ID"},
		{"no credential", "NoAuthenticationInformation", "", "", now, "no credential", "a key, a SAS or a token"},
		{"a disabled account", "AccountIsDisabled", "", "SharedKey acct:x", now, "is disabled", "owner"},
	} {
		u, err := url.Parse("https://acct.blob.core.windows.net/jobs/a" + tt.query)
		if err != nil {
			t.Fatal(err)
		}
		header := http.Header{"Date": {tt.date.Format(http.TimeFormat)}, "X-Ms-Request-Id": {"r"}}
		refusal := &azcore.ResponseError{StatusCode: 403, ErrorCode: tt.code, RawResponse: &http.Response{StatusCode: 403, Header: header,
			Body: io.NopCloser(strings.NewReader("<Error/>")), Request: &http.Request{Method: http.MethodPut, URL: u, Header: http.Header{"Authorization": {tt.auth}}}}}
		text := Op("update", "jobs/a", refusal).Error()
		if !strings.Contains(text, tt.why) || !strings.Contains(text, tt.way) || !strings.HasPrefix(text, "update jobs/a: 403 "+tt.code) || strings.Contains(text, "c2VjcmV0") {
			t.Errorf("%s: %s\nwant it to say %q and %q", tt.name, text, tt.why, tt.way)
		}
	}
	for _, other := range []error{nil, io.EOF, &azcore.ResponseError{StatusCode: 404, ErrorCode: "BlobNotFound"}, &azcore.ResponseError{StatusCode: 403, ErrorCode: "LeaseIdMissing"}} {
		if why, way := Denied(other); why != "" || way != "" {
			t.Errorf("%v: %q, %q", other, why, way)
		}
	}
}
