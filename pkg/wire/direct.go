package wire

import (
	"errors"
	"net/netip"
	"net/url"
	"strings"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore"
)

// Direct reports whether the response in err came over a path on which nothing can have delivered the request twice: TLS
// to one of the service's own domains, or the loopback interface. An intermediary that repeats requests has to terminate
// the connection. It cannot do so within TLS, unless the client trusts its certificates, as it does where a company
// inspects TLS; Direct cannot see that. A plain HTTP connection and a custom domain, which a front door may serve, are not
// direct. Neither is an error without a response.
func Direct(err error) bool {
	answer, ok := errors.AsType[*azcore.ResponseError](err)
	if !ok || answer.RawResponse == nil || answer.RawResponse.Request == nil {
		return false
	}
	return DirectURL(answer.RawResponse.Request.URL)
}

// serviceDomains are the domains of the public and the national clouds, and that of accounts with DNS zone endpoints
// (Microsoft Learn: "Storage account overview", endpoints).
var serviceDomains = []string{".core.windows.net", ".core.chinacloudapi.cn", ".core.usgovcloudapi.net", ".storage.azure.net"}

// DirectURL reports whether requests to a URL go on such a path.
func DirectURL(u *url.URL) bool {
	if u == nil {
		return false
	}
	host := strings.TrimSuffix(strings.ToLower(u.Hostname()), ".")
	if addr, err := netip.ParseAddr(host); err == nil {
		return addr.Unmap().IsLoopback()
	}
	if host == "localhost" || strings.HasSuffix(host, ".localhost") {
		return true
	}
	if u.Scheme != "https" {
		return false
	}
	for _, domain := range serviceDomains {
		if strings.HasSuffix(host, domain) {
			return true
		}
	}
	return false
}
