package azerr

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"os"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore"
)

// refusal is how the service refuses a request: for its query, with its Authorization, and with a body. detail is text of the body.
func refusal(code, query, authorization, detail string) *azcore.ResponseError {
	u, err := url.Parse("https://acct.blob.core.windows.net/jobs/a" + query)
	if err != nil {
		panic(err)
	}
	now := time.Now().UTC().Format(http.TimeFormat)
	request := &http.Request{Method: http.MethodPut, URL: u, Header: http.Header{"X-Ms-Date": {now}}}
	if authorization != "" {
		request.Header.Set("Authorization", authorization)
	}
	body := "<Error><AuthenticationErrorDetail>" + detail + "</AuthenticationErrorDetail></Error>"
	return &azcore.ResponseError{StatusCode: 403, ErrorCode: code, RawResponse: &http.Response{
		StatusCode: 403, Request: request, Body: io.NopCloser(strings.NewReader(body)), Header: http.Header{"Date": {now}, "X-Ms-Request-Id": {"r"}},
	}}
}

// TestAnErrorNamesItsCauseAndTheWayOut once, however often it is wrapped. A program got the service's code alone.
func TestAnErrorNamesItsCauseAndTheWayOut(t *testing.T) {
	const sas = "?sv=2025-01-05&sp=r&ss=q&srt=s&sip=10.0.0.1&sig=c2VjcmV0"
	const key, token = "SharedKey acct:c2VjcmV0", "Bearer c2VjcmV0c2VjcmV0c2VjcmV0"
	late := refusal("AuthenticationFailed", "", key, "")
	late.RawResponse.Header.Set("Date", time.Now().Add(-time.Hour).UTC().Format(http.TimeFormat))
	portal := refusal("", "", key, "")
	portal.RawResponse.Header = http.Header{}
	dial := func(err error) error {
		return failed(&net.OpError{Op: "dial", Err: os.NewSyscallError("connect", err)})
	}
	certificate := func(err error) error { return failed(&tls.CertificateVerificationError{Err: err}) }

	for _, tt := range []struct {
		name     string
		err      error
		why, way string
	}{
		{"a SAS that has expired", refusal("AuthenticationFailed", sas+"&se=1999-12-31T12:00:00Z", "", ""), "expired on 1999-12-31T12:00:00Z", "ends later"},
		{"a SAS of tomorrow", refusal("AuthenticationFailed", sas+"&st=2999-12-31", "", ""), "not valid before 2999-12-31", "starts earlier"},
		{"a wrong SAS", refusal("AuthenticationFailed", sas, "", "sv is unknown"), "does not accept the SAS: sv is unknown", "is it complete"},
		{"a SAS without the permission", refusal("AuthorizationPermissionMismatch", sas, "", ""), `lacks the permission c or w: it grants "r"`, "missing permission"},
		{"a SAS and access policies", refusal("AuthorizationFailure", sas+"&comp=acl", "", ""), "no SAS allows", "the role Storage Blob Data Owner"},
		{"a feature without directories", refusal("FeatureNotYetSupportedForHierarchicalNamespaceAccounts", "", key, ""), "hierarchical namespace", "without"},
		{"a blob that is a directory", refusal("PathConflict", "", key, ""), "directory", "another name"},
		{"a directory that is a blob", refusal("ResourceTypeMismatch", "", key, ""), "directory", "another name"},
		{"another type of resource", refusal("AuthorizationResourceTypeMismatch", sas, "", ""), `covers "s"`, "a SAS for s"},
		{"another service", refusal("AuthorizationServiceMismatch", sas, "", ""), "does not cover the blob service", "this service"},
		{"plain HTTP", refusal("AuthorizationProtocolMismatch", sas, "", ""), "HTTPS only", "https://"},
		{"another address", refusal("AuthorizationSourceIPMismatch", sas, "", ""), `covers "10.0.0.1"`, "this address"},
		{"a SAS for creating", refusal("UnauthorizedBlobOverwrite", sas, "", ""), "the blob exists", "w (write)"},
		{"an expired token", refusal("InvalidAuthenticationInfo", "", token, "Lifetime validation failed. The token is expired."), "expired", "sign in again"},
		{"another audience", refusal("AuthenticationFailed", "", token, "Audience validation failed. Audience did not match."), "another audience", "storage.azure.com/.default"},
		{"another tenant", refusal("InvalidAuthenticationInfo", "", token, "Issuer validation failed. Issuer did not match."), "another tenant", "--tenant"},
		{"a wrong token", refusal("InvalidAuthenticationInfo", "", token, ""), "does not accept the token", "az account show"},
		{"an identity without a role", refusal("AuthorizationPermissionMismatch", "", token, ""), "no role", `"Storage Blob Data Contributor"`},
		{"a clock that is wrong", late, "clock is wrong by 1h0m0s", "set the clock"},
		{"a date that is too old", refusal("AuthenticationFailed", "", key, "Request date header too old"), "clock is wrong", "set the clock"},
		{"a wrong key", refusal("AuthenticationFailed", "", key, "The MAC signature found in"), "does not accept the account key", "az storage account keys list"},
		{"no keys", refusal("KeyBasedAuthenticationNotPermitted", "", key, ""), "neither keys nor SAS", "Entra ID"},
		{"no credential", refusal("NoAuthenticationInformation", "", "", ""), "no credential", "a key, a SAS or a token"},
		{"no public access", refusal("PublicAccessNotPermitted", "", "", ""), "no public access", "its owner allow"},
		{"a private container", refusal("ResourceNotFound", "", "", ""), "is not public", "a key, a SAS or a token"},
		{"network rules, or a SAS", refusal("AuthorizationFailure", sas, "", ""), "or the SAS does not cover", "--name acct "},
		{"network rules", refusal("AuthorizationFailure", "", token, ""), "network rules do not admit this machine", "--name acct "},
		{"a disabled account", refusal("AccountIsDisabled", "", key, ""), "is disabled", "owner"},
		{"a secondary endpoint", refusal("InsufficientAccountPermissions", "", key, ""), "reads or writes are off", "primary endpoint"},
		{"a young account", refusal("AccountBeingCreated", "", key, ""), "being created", "in a minute"},
		{"an old TLS", refusal("TlsVersionNotPermitted", "", key, ""), "later version of TLS", "TLS 1.2"},
		{"a hierarchical namespace", refusal("FeatureNotSupportedForAccount", "", key, ""), "hierarchical namespace", "StorageV2"},
		{"an account without tiers", refusal("BlobAccessTierNotSupportedForAccountType", "", key, ""), "no access tiers", "StorageV2"},
		{"an operation that is not there", refusal("NotImplemented", "", key, ""), "does not have this operation", "on one"},
		{"an old emulator", refusal("InvalidHeaderValue", "", key, "The API version 2099-01-01 is not supported by Azurite."), "older than the SDK", "update Azurite"},
		{"a disabled container", refusal("ContainerDisabled", "", key, ""), "an administrator", "owner"},
		{"too many requests", refusal("ServerBusy", "", key, ""), "more requests than it serves", "fewer at a time"},
		{"too long a request", refusal("OperationTimedOut", "", key, ""), "did not finish", "less with one request"},
		{"a container that is being deleted", refusal("ContainerBeingDeleted", "", key, ""), "is being deleted", "another name"},
		{"a copy", refusal("PendingCopyOperation", "", key, ""), "a copy", "abort it"},
		{"a retention policy", refusal("BlobImmutableDueToPolicy", "", key, ""), "retention policy", "its retention ends"},
		{"a legal hold", refusal("BlobImmutableDueToLegalHold", "", key, ""), "legal hold", "cleared"},
		{"a locked policy", refusal("ImmutabilityPolicyDeleteOnLockedPolicy", "", key, ""), "is locked", "retention ends"},
		{"an archived blob", refusal("BlobArchived", "", key, ""), "archive tier", "hot or cool"},
		{"a blob that leaves the archive", refusal("BlobBeingRehydrated", "", key, ""), "out of the archive", "hours"},
		{"a sealed blob", refusal("BlobIsSealed", "", key, ""), "sealed", "another one"},
		{"a blob with a key of its own", refusal("BlobUsesCustomerSpecifiedEncryption", "", key, ""), "key or a scope", "the same"},
		{"a read-only file", refusal("ReadOnlyAttribute", "", key, ""), "read-only", "clear the attribute"},
		{"a full share", refusal("ShareSizeLimitReached", "", key, ""), "full", "quota"},
		{"damaged content", refusal("Md5Mismatch", "", key, ""), "damaged on the way", "try again"},
		{"a login page", portal, "did not come from Azure Storage", "sign in to the network"},
		{"a login page that succeeds", FromService(&http.Response{StatusCode: 200}), "did not come from Azure Storage", "sign in to the network"},

		{"no proxy", failed(&net.OpError{Op: "proxyconnect", Err: syscall.ECONNREFUSED}), "proxy cannot be reached", "HTTPS_PROXY"},
		{"a proxy that refuses", failed(errors.New("Proxy Authentication Required")), "proxy refuses", "password"},
		{"no such account", dial(&net.DNSError{Name: "acct.blob.core.windows.net", IsNotFound: true}), "no acct.blob.core", "account name"},
		{"no name server", dial(&net.DNSError{Err: "server misbehaving"}), "cannot resolve names", "name server"},
		{"nobody listens", dial(syscall.ECONNREFUSED), "nothing listens at acct.blob.core.windows.net", "emulator"},
		{"no route", dial(syscall.EHOSTUNREACH), "no route", "private endpoint"},
		{"no answer", dial(os.ErrDeadlineExceeded), "does not answer", "firewall"},
		{"another host's certificate", certificate(x509.HostnameError{Certificate: new(x509.Certificate), Host: "h"}), "not that of acct.", "leads elsewhere"},
		{"an expired certificate", certificate(x509.CertificateInvalidError{Reason: x509.Expired}), "not valid at this time", "clock"},
		{"an unknown authority", certificate(x509.UnknownAuthorityError{}), "does not trust", "SSL_CERT_FILE"},
		{"no TLS", failed(http.ErrSchemeMismatch), "speaks no TLS", "http://"},
		{"no TLS, but something else", failed(tls.RecordHeaderError{Msg: "first record"}), "speaks no TLS", "http://"},
		{"TLS", failed(errors.New(`malformed HTTP response "\x15\x03\x01"`)), "without it", "https://"},
		{"a token without TLS", untrusted("authenticated requests are not permitted for non TLS protected endpoints"), "without TLS", "https://"},
		{"no token", untrusted("run az login"), "no token", "sign in"},
	} {
		inner := Op("update", "jobs/a", fmt.Errorf("put: %w", tt.err))
		for _, err := range []error{inner, Clean(inner), Clean(fmt.Errorf("save: %w", Clean(tt.err)))} {
			text := err.Error()
			if !strings.Contains(text, tt.why) || strings.Count(text, tt.way) != 1 || strings.Contains(text, "c2VjcmV0") || strings.Contains(text, "$") {
				t.Errorf("%s: %s\nwant it to say %q and %q", tt.name, text, tt.why, tt.way)
			}
		}
	}
	for _, other := range []error{nil, io.EOF, answered(404, "BlobNotFound"), answered(412, "ConditionNotMet"), answered(403, "LeaseIdMissing")} {
		if why, way := Explain(other); why != "" || way != "" {
			t.Errorf("%v: %q, %q", other, why, way)
		}
	}
}

// untrusted is an error that the SDK has marked as one of credentials.
type untrusted string

func (e untrusted) Error() string { return string(e) }
func (untrusted) NonRetriable()   {}
