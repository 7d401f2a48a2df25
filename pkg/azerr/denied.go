package azerr

import (
	"encoding/xml"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"regexp"
	"strings"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore"
	"github.com/Azure/azure-sdk-for-go/sdk/azcore/runtime"
)

// Denied returns why the service refused the caller, and the way out: a wrong key, a shared access signature that has expired or does
// not cover the request, a clock that is wrong, a missing role. Both are empty for any other error, and if there is nothing to add
// to the code. Neither has a secret. An *OpError has both in its text.
func Denied(err error) (why, way string) {
	refusal, ok := errors.AsType[*azcore.ResponseError](err)
	if !ok || Classify(err).Kind != Unauthorised {
		return "", ""
	}
	r := requestOf(refusal)
	switch Classify(err).Code {
	case "KeyBasedAuthenticationNotPermitted":
		return "the account allows neither keys nor SAS made with one", "sign in with Entra ID"
	case "AuthorizationPermissionMismatch", "InsufficientAccountPermissions":
		if r.sas == nil {
			return "the identity has no role that allows this",
				fmt.Sprintf("assign it the role %q on the account or a narrower scope; that takes up to ten minutes to take effect", r.role())
		}
		return fmt.Sprintf("the SAS does not allow this: it grants %q (sp)", r.sas.Get("sp")), "create one with the missing permission"
	case "AuthorizationResourceTypeMismatch":
		return fmt.Sprintf("the SAS does not cover this type of resource: it covers %q (srt)", r.sas.Get("srt")),
			"create one for s (service), c (container, table, queue, share) and o (blob, entity, message, file), as needed"
	case "AuthorizationServiceMismatch":
		return fmt.Sprintf("the SAS does not cover the %s service: it covers %q (ss)", r.service, r.sas.Get("ss")), "create one for this service"
	case "AuthorizationProtocolMismatch":
		return "the SAS is for HTTPS only", "give an https:// endpoint"
	case "AuthorizationSourceIPMismatch":
		return fmt.Sprintf("the SAS does not cover this machine's address: it covers %q (sip)", r.sas.Get("sip")), "create one for this address"
	case "AuthorizationFailure":
		return "the account's network rules do not admit this machine, or the credential does not cover the request",
			fmt.Sprintf("az storage account show --name %s --query '{access:publicNetworkAccess, rules:networkRuleSet}' shows the rules", r.account)
	case "AccountIsDisabled":
		return "the account is disabled", "its owner can enable it"
	case "NoAuthenticationInformation":
		return "the request carries no credential", "give the client a key, a SAS or a token credential"
	case "AuthenticationFailed", "InvalidAuthenticationInfo":
		return r.unauthenticated(detailOf(refusal))
	}
	return "", ""
}

// refusedRequest is the part of a refused request that explains the refusal.
type refusedRequest struct {
	account, service string
	writes           bool
	receives         bool       // it is Get Messages, which a reader may not send
	token            bool       // it carried a token of Entra ID
	sas              url.Values // nil if it had none
	at               time.Time  // of the service's clock
}

// sdkClient matches the name of an SDK client, such as "azsdk-go-aztables/v1.4.1".
var sdkClient = regexp.MustCompile(`\bazsdk-go-az(blob|table|queue|file)s?/`)

func requestOf(e *azcore.ResponseError) (r refusedRequest) {
	r.account = "<account>"
	if e.RawResponse == nil || e.RawResponse.Request == nil {
		return r
	}
	req := e.RawResponse.Request
	words := strings.Split(req.URL.Hostname(), ".")
	if len(words) > 1 && req.URL.Hostname() != "localhost" && net.ParseIP(req.URL.Hostname()) == nil {
		r.account, r.service = words[0], words[1]
	}
	if client := sdkClient.FindStringSubmatch(req.UserAgent()); client != nil { // the host of an emulator names no service
		r.service = client[1]
	}
	r.writes = req.Method != http.MethodGet && req.Method != http.MethodHead
	r.receives = req.Method == http.MethodGet && r.service == "queue" && strings.HasSuffix(req.URL.Path, "/messages") && req.URL.Query().Get("peekonly") == ""
	r.token = strings.HasPrefix(req.Header.Get("Authorization"), "Bearer ")
	if q := req.URL.Query(); q.Get("sig") != "" {
		r.sas = q
	}
	r.at, _ = http.ParseTime(e.RawResponse.Header.Get("Date"))
	return r
}

// role returns the least privileged built-in role that allows the request.
func (r refusedRequest) role() string {
	noun := map[string]string{"table": "Table", "queue": "Queue", "file": "File"}[r.service]
	switch {
	case noun == "File":
		return "Storage File Data Privileged Contributor"
	case r.receives:
		return "Storage Queue Data Message Processor"
	case noun == "":
		noun = "Blob"
	}
	if r.writes {
		return "Storage " + noun + " Data Contributor"
	}
	return "Storage " + noun + " Data Reader"
}

// unauthenticated explains why the service does not accept a credential.
func (r refusedRequest) unauthenticated(detail string) (why, way string) {
	now := r.at
	if now.IsZero() {
		now = time.Now()
	}
	switch {
	case r.sas != nil:
		if end, err := parseSASTime(r.sas.Get("se")); err == nil && !end.After(now) {
			return "the SAS expired on " + end.UTC().Format(time.RFC3339), "create a new one"
		}
		if begin, err := parseSASTime(r.sas.Get("st")); err == nil && begin.After(now) {
			return "the SAS is not valid before " + begin.UTC().Format(time.RFC3339), "wait, or create one that starts earlier: clocks differ by minutes"
		}
		return withDetail("the service does not accept the SAS", detail),
			"is it complete, of this account, and signed with one of the account's current keys?"
	case r.token:
		return withDetail("the service does not accept the token", detail), "is the account in the tenant that you are signed in to? az account show prints the tenant"
	}
	if skew := time.Since(now).Round(time.Second); !r.at.IsZero() && skew.Abs() > 10*time.Minute {
		return fmt.Sprintf("this machine's clock is wrong by %v", skew.Abs()), "set the clock: a signed request is valid for 15 minutes"
	}
	return withDetail("the service does not accept the account key", detail), "is it one of the account's current keys? az storage account keys list shows them"
}

func withDetail(text, detail string) string {
	if detail == "" {
		return text
	}
	return text + ": " + detail
}

// parseSASTime parses a time in one of the formats of a SAS.
func parseSASTime(s string) (time.Time, error) {
	for _, layout := range []string{time.RFC3339, "2006-01-02T15:04Z", time.DateOnly} {
		if t, err := time.Parse(layout, s); err == nil {
			return t, nil
		}
	}
	return time.Time{}, fmt.Errorf("%q is not a time", s)
}

// detailOf returns the service's explanation. For a signature that does not match it is the string to sign, which does
// not help a user, so it is omitted.
func detailOf(e *azcore.ResponseError) string {
	if e.RawResponse == nil || e.RawResponse.Body == nil {
		return ""
	}
	body, err := runtime.Payload(e.RawResponse)
	if err != nil {
		return ""
	}
	var said struct{ AuthenticationErrorDetail string }
	if xml.Unmarshal(body, &said) != nil || strings.Contains(said.AuthenticationErrorDetail, "Signature did not match") ||
		strings.Contains(said.AuthenticationErrorDetail, "The MAC signature") {
		return ""
	}
	return strings.TrimSuffix(oneLine(said.AuthenticationErrorDetail), ".")
}
