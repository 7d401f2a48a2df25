package azerr

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"net"
	"net/http"
	"net/url"
	"os"
	"slices"
	"strings"
	"sync"
	"syscall"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore"
)

// Explain returns the cause of an error, where it is not the request but what is around it that is wrong: a credential, a clock, a
// role, the account, the network. It also returns the way out. Both are empty for any other error, also for a *ForeignError, whose text
// has both, and neither has a secret. The text of Clean and Summary, and so that of each error of this module, ends with both.
func Explain(err error) (why, way string) {
	refusal, ok := errors.AsType[*azcore.ResponseError](err)
	switch {
	case err == nil:
		return "", ""
	case !ok:
		return unconnected(err)
	}
	o := Classify(refusal)
	rows := byCode()[o.Code]
	if o.Index < 0 && foreignFailure(refusal) {
		rows = foreigners
	}
	if rows == nil {
		return "", "" // most are, and what follows is costly
	}
	r := requestOf(refusal)
	for _, e := range rows {
		if e.when == nil || e.when(r) {
			return os.Expand(e.why, r.fact), os.Expand(e.way, r.fact)
		}
	}
	return "", ""
}

// unconnected explains an error without a response.
func unconnected(err error) (why, way string) {
	host := "the endpoint"
	if u, ok := errors.AsType[*url.Error](err); ok {
		if to, err := url.Parse(u.URL); err == nil {
			host = to.Host
		}
	}
	if unknown, ok := errors.AsType[*net.DNSError](err); ok {
		host = unknown.Name
	}
	fact := func(string) string { return host }
	for _, e := range unanswerable {
		if e.is(err) {
			return os.Expand(e.why, fact), os.Expand(e.way, fact)
		}
	}
	return "", ""
}

// explained adds to a text what Explain says of its error, unless it has that already.
func explained(text string, err error) string {
	why, way := Explain(err)
	if why == "" || strings.Contains(text, way) {
		return text
	}
	return text + ": " + why + "; " + way
}

// has returns a predicate for errors with an E in their chain that meets a condition.
func has[E error](condition func(E) bool) func(error) bool {
	return func(err error) bool {
		e, ok := errors.AsType[E](err)
		return ok && condition(e)
	}
}

// is returns a predicate for errors with one of others in their chain.
func is(others ...error) func(error) bool {
	return func(err error) bool {
		return slices.ContainsFunc(others, func(other error) bool { return errors.Is(err, other) })
	}
}

// refusedByProxy reports whether a proxy has refused to connect to the service. net/http returns the text of the status alone.
func refusedByProxy(u *url.Error) bool {
	for status := http.StatusBadRequest; u.Err != nil && status < 600; status++ {
		if text := http.StatusText(status); text != "" && u.Err.Error() == text {
			return true
		}
	}
	return false
}

const (
	useHTTPS   = "give an https:// endpoint"
	checkProxy = "correct HTTPS_PROXY, or name the account's hosts in NO_PROXY"
	clients    = "give the client a key, a SAS or a token credential"
)

// unanswerable are errors without a response; the first row that applies counts. $host is where the request was sent to.
var unanswerable = []struct {
	is       func(error) bool
	why, way string
}{
	{has(func(e *net.OpError) bool { return e.Op == "proxyconnect" }), "the proxy cannot be reached", checkProxy},
	{has(refusedByProxy), "the proxy refuses to connect to $host", checkProxy + "; a proxy that wants a password has it in its URL"},
	{has(func(e *net.DNSError) bool { return e.IsNotFound }), "there is no $host",
		"is the account name right? it is the first part; a private endpoint also needs the DNS zone of its network"},
	{has(func(*net.DNSError) bool { return true }), "this machine cannot resolve names", "check its network and its name server"},
	{is(syscall.ECONNREFUSED), "nothing listens at $host", "is the address right, and is the emulator running?"},
	{is(syscall.ENETUNREACH, syscall.EHOSTUNREACH), "there is no route to $host",
		"check the network; a private endpoint is reached from its own"},
	{has(func(e *net.OpError) bool { return e.Op == "dial" && e.Timeout() }), "$host does not answer",
		"check the firewall in between; a private endpoint is reached from its own network"},
	{has(func(x509.HostnameError) bool { return true }), "the certificate is not that of $host",
		"check the endpoint, and whether a proxy or a hosts file leads elsewhere"},
	{has(func(e x509.CertificateInvalidError) bool { return e.Reason == x509.Expired }), "the certificate of $host is not valid at this time",
		"check this machine's clock, and renew the certificate if it is yours"},
	{has(func(x509.UnknownAuthorityError) bool { return true }), "this machine does not trust who has issued the certificate of $host",
		"if a proxy inspects TLS, or it is an emulator, add its authority: SSL_CERT_FILE names a file"},
	{is(http.ErrSchemeMismatch), "the port of $host speaks no TLS", "give an http:// endpoint, or the port for TLS"},
	{has(func(tls.RecordHeaderError) bool { return true }), "the port of $host speaks no TLS",
		"give an http:// endpoint, or the port for TLS"},
	{func(err error) bool { return strings.Contains(err.Error(), `malformed HTTP response "\x15`) },
		"the port of $host speaks TLS, and the request was sent without it", useHTTPS},
	{has(func(e nonRetriable) bool { return strings.Contains(e.Error(), "non TLS protected") }),
		"a token is not sent without TLS", useHTTPS},
	{func(err error) bool { return Classify(err).Kind == Unauthorised }, "there is no token to sign the request with",
		"sign in, as by az login, or give the client a key or a SAS"},
}

// explanation is a row of the table of codes. $name in its texts is a fact of the request.
type explanation struct {
	codes    string                // separated by spaces
	when     func(r *refused) bool // defaults to always
	why, way string
}

// byCode has the explanations of each code; the first that applies counts.
var byCode = sync.OnceValue(func() map[string][]explanation {
	all := map[string][]explanation{}
	for _, e := range explanations {
		for code := range strings.FieldsSeq(e.codes) {
			all[code] = append(all[code], e)
		}
	}
	return all
})

// Sources: "Common REST API error codes", "SAS error codes" and the pages of the services' codes; the answers of accounts.
var explanations = []explanation{
	// A shared access signature.
	{"AuthenticationFailed", (*refused).expired, "the SAS expired on $se", "create a SAS that ends later"},
	{"AuthenticationFailed", (*refused).early, "the SAS is not valid before $st",
		"wait, or create one that starts earlier: clocks differ by minutes"},
	{"AuthenticationFailed", (*refused).signed, "the service does not accept the SAS$detail",
		"is it complete, of this account, and signed with one of the account's current keys?"},
	{"AuthorizationPermissionMismatch", (*refused).signed, `the SAS lacks the permission $permission: it grants "$sp" (sp)`,
		"create a SAS with the missing permission"},
	{"AuthorizationResourceTypeMismatch", nil, `the SAS does not cover this type of resource: it covers "$srt" (srt)`,
		"create a SAS for s (service), c (container, table, queue, share) and o (blob, entity, message, file), as needed"},
	{"AuthorizationServiceMismatch", nil, `the SAS does not cover the $service service: it covers "$ss" (ss)`,
		"create a SAS for this service"},
	{"AuthorizationProtocolMismatch", nil, "the SAS is for HTTPS only", useHTTPS},
	{"AuthorizationSourceIPMismatch", nil, `the SAS does not cover this machine's address: it covers "$sip" (sip)`,
		"create a SAS for this address"},
	{"UnauthorizedBlobOverwrite", nil, `the blob exists, and the SAS permits creating alone: it grants "$sp" (sp)`,
		"create a SAS with w (write)"},

	// A token.
	{"AuthenticationFailed InvalidAuthenticationInfo", said("Lifetime validation failed"), "the token has expired",
		"sign in again, and check this machine's clock"},
	{"AuthenticationFailed InvalidAuthenticationInfo", said("Audience validation failed"), "the token is for another audience",
		"ask for the scope https://storage.azure.com/.default, in the account's own cloud"},
	{"AuthenticationFailed InvalidAuthenticationInfo", said("Issuer validation failed"), "the token is of another tenant than the account",
		"sign in to the account's tenant: az login --tenant; az account show prints the present one"},
	{"AuthenticationFailed InvalidAuthenticationInfo", (*refused).tokened, "the service does not accept the token$detail",
		"is the account in the tenant that you are signed in to? az account show prints the tenant"},
	{"AuthorizationPermissionMismatch", nil, "the identity has no role that allows this",
		`assign it the role "$role" on the account or a narrower scope; that takes up to ten minutes to take effect`},

	// A key, or nothing.
	{"AuthenticationFailed", (*refused).skewed, "this machine's clock is wrong by $skew",
		"set the clock: a signed request is valid for 15 minutes"},
	{"AuthenticationFailed", said("Request date header too old"), "this machine's clock is wrong",
		"set the clock: a signed request is valid for 15 minutes"},
	{"AuthenticationFailed InvalidAuthenticationInfo", nil, "the service does not accept the account key$detail",
		"is it one of the account's current keys? az storage account keys list shows them"},
	{"KeyBasedAuthenticationNotPermitted", nil, "the account allows neither keys nor SAS made with one", "sign in with Entra ID"},
	{"NoAuthenticationInformation", nil, "the request carries no credential", clients},
	{"PublicAccessNotPermitted", nil, "the account allows no public access", clients + ", or let its owner allow public access"},
	{"ResourceNotFound", (*refused).anonymous, "the request carries no credential, and the container is not public, or is not there",
		clients},

	// The account.
	{"AuthorizationFailure", (*refused).policies, "no SAS allows reading or changing access policies", "give the account key, or sign in with the role $role"},
	{"AuthorizationFailure", (*refused).signed, "the account's network rules do not admit this machine, or the SAS does not cover the request",
		networkRules},
	{"AuthorizationFailure", nil, "the account's network rules do not admit this machine", networkRules},
	{"AccountIsDisabled", nil, "the account is disabled", "its owner can enable it"},
	{"InsufficientAccountPermissions", nil, "the account's reads or writes are off, or this is its secondary endpoint",
		"use the primary endpoint, or ask the account's owner"},
	{"AccountBeingCreated", nil, "the account is still being created", "try again in a minute"},
	{"TlsVersionNotPermitted", nil, "the account wants a later version of TLS", "use TLS 1.2 or later: is there a proxy in between?"},
	{"FeatureNotYetSupportedForHierarchicalNamespaceAccounts", nil, "accounts with a hierarchical namespace do not have this feature", flat},
	{"PathConflict ResourceTypeMismatch", nil, "the account has a hierarchical namespace, in which the name, or a part of it before a slash, is that of a directory or of a blob already",
		"take another name: a directory cannot be a blob, nor a blob a directory; or " + flat},
	{"FeatureNotSupportedForAccount", nil, "the account's kind, or its hierarchical namespace, does not have this feature",
		"use an account of kind StorageV2 without a hierarchical namespace"},
	{"BlobAccessTierNotSupportedForAccountType", nil, "the account's kind has no access tiers",
		"leave the tier out, or use an account of kind StorageV2"},
	{"NotImplemented", nil, "the service does not have this operation", "an emulator has fewer than an account: try it on one"},
	{"InvalidHeaderValue", said("API version"), "the emulator is older than the SDK",
		"update Azurite, or start it with --skipApiVersionCheck"},
	{"ContainerDisabled QueueDisabled ShareDisabled", nil, "an administrator has disabled it", "ask the account's owner"},

	// States of a resource, and load.
	{"ServerBusy TooManyRequests", nil, "the partition or the account gets more requests than it serves",
		"send fewer at a time, or spread them over more blobs, partitions or accounts"},
	{"OperationTimedOut", nil, "the service did not finish in time", "send less with one request, or try again later"},
	{"ContainerBeingDeleted TableBeingDeleted QueueBeingDeleted ShareBeingDeleted", nil, "the name is that of one that is being deleted",
		"wait, which may take a minute or more, or take another name"},
	{"PendingCopyOperation", nil, "a copy to the blob is under way", "wait until it ends, or abort it"},
	{"BlobImmutableDueToPolicy", nil, "a retention policy protects the blob", "write under another name, or wait until its retention ends"},
	{"BlobImmutableDueToLegalHold", nil, "a legal hold protects the blob",
		"write under another name, or have the hold cleared by its owner"},
	{"ImmutabilityPolicyDeleteOnLockedPolicy", nil, "the retention policy is locked", "wait until its retention ends"},
	{"BlobArchived", nil, "the blob is in the archive tier", "set its tier to hot or cool first, which takes hours"},
	{"BlobBeingRehydrated", nil, "the blob is on its way out of the archive tier", "wait, which takes hours"},
	{"BlobIsSealed", nil, "the append blob is sealed", "write to another one"},
	{"BlobUsesCustomerSpecifiedEncryption", nil, "the blob is encrypted with a key or a scope of its writer",
		"give the client the same key or scope"},
	{"ReadOnlyAttribute", nil, "the file's read-only attribute is set", "clear the attribute, with SMB or Set File Properties"},
	{"ShareSizeLimitReached", nil, "the share is full", "raise its quota, or delete files"},
	{"Md5Mismatch Crc64Mismatch", nil, "the content was damaged on the way", "try again; if it returns, check the proxy"},
}

// foreigners explain responses that are not the service's.
var foreigners = []explanation{
	{"", (*refused).withoutTLS, "the port speaks TLS, and the request was sent without it", useHTTPS},
	{"", nil, foreignText, foreignWay},
}

const flat = "use an account without a hierarchical namespace"

const networkRules = "az storage account show --name $account --query '{access:publicNetworkAccess, rules:networkRuleSet}' shows the rules"
