package doctor

import (
	"cmp"
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"slices"
	"strings"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore"

	"github.com/azconc/azconc/cmd/azconc/internal/azaccount"
	"github.com/azconc/azconc/cmd/azconc/internal/cli/fail"
	"github.com/azconc/azconc/pkg/azerr"
	"github.com/azconc/azconc/pkg/wire"
)

// network is the part of the way to the service that is below HTTP.
type network interface {
	// lookup returns the canonical name of a host, and its addresses.
	lookup(ctx context.Context, host string) (canonical string, addresses []netip.Addr, err error)

	// issuers returns who has issued the certificate that a server shows.
	issuers(ctx context.Context, address, host string) ([]string, error)

	// proxy returns the URL of the proxy through which requests to u go; nil for none.
	proxy(u *url.URL) (*url.URL, error)
}

// machine is the network of this machine.
type machine struct{}

func (machine) lookup(ctx context.Context, host string) (string, []netip.Addr, error) {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	addresses, err := net.DefaultResolver.LookupNetIP(ctx, "ip", host)
	if err != nil {
		return "", nil, err
	}
	canonical, err := net.DefaultResolver.LookupCNAME(ctx, host)
	if err != nil {
		canonical = host // the addresses matter
	}
	return canonical, addresses, nil
}

func (machine) issuers(ctx context.Context, address, host string) ([]string, error) {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	dialer := tls.Dialer{Config: &tls.Config{ServerName: host, MinVersion: tls.VersionTLS12}}
	conn, err := dialer.DialContext(ctx, "tcp", address)
	if err != nil {
		return nil, err
	}
	defer func() { _ = conn.Close() }() // its certificate has been read
	secured, ok := conn.(*tls.Conn)
	if !ok || len(secured.ConnectionState().PeerCertificates) == 0 {
		return nil, errors.New("the server shows no certificate")
	}
	return secured.ConnectionState().PeerCertificates[0].Issuer.Organization, nil
}

func (machine) proxy(u *url.URL) (*url.URL, error) {
	return http.ProxyFromEnvironment(&http.Request{URL: u})
}

func (p *patient) account() *azaccount.Account {
	account, err := p.f.Account()
	if err != nil {
		p.refused("account", "", err)
		return nil
	}
	if account.Endpoint(azaccount.Blob) == "" && account.Endpoint(azaccount.Queue) == "" && account.Endpoint(azaccount.Table) == "" {
		p.add("account", failed, "give --account-name or --connection-string, or set AZURE_STORAGE_CONNECTION_STRING", "no account is given")
		return nil
	}
	p.add("account", ok, "", "%s, by %s", cmp.Or(account.Name(), "an account without a name"), account.Credential())
	return account
}

var examined = []azaccount.Service{azaccount.Blob, azaccount.Queue, azaccount.Table, azaccount.File}

// reach looks at names, proxies and certificates. It returns the services that can be asked.
func (p *patient) reach(ctx context.Context, account *azaccount.Account) (reachable []azaccount.Service) {
	for _, s := range examined {
		u, err := url.Parse(account.Endpoint(s))
		// An emulator that has not the service has a real account's endpoint for it, by its name.
		if err != nil || u.Host == "" || account.Emulator(azaccount.Blob) && !account.Emulator(s) {
			if s != azaccount.File { // Azurite has none, and few accounts use them with azconc
				p.add(string(s), warning, "give --"+string(s)+"-endpoint, if the account has the service", "no endpoint is given")
			}
			continue
		}
		proxy, err := p.network.proxy(u)
		if err != nil {
			p.add("proxy", failed, proxyCure, "%v", err)
			continue
		}
		if proxy != nil {
			p.add("proxy", warning, "NO_PROXY="+u.Hostname()+", and the account's other hosts, goes past it",
				"requests go through the proxy %s", proxy.Redacted())
		}
		// A proxy resolves names, and connects, itself.
		p.trusted(u)
		if proxy != nil || p.named(ctx, u.Hostname()) && p.connected(ctx, u) {
			reachable = append(reachable, s)
		}
	}
	return reachable
}

// named reports whether the host of a service has an address.
func (p *patient) named(ctx context.Context, host string) bool {
	if azaccount.PathStyle(host) {
		return true
	}
	canonical, addresses, err := p.network.lookup(ctx, host)
	if missing, unknown := errors.AsType[*net.DNSError](err); unknown && missing.IsNotFound {
		p.add("name", failed, "is the account's name right, and does an account of its kind have this service? With a private endpoint: "+
			"the private DNS zone of the service needs a record for the account, and must be linked to this network", "%s has no address", host)
		return false
	}
	if err != nil {
		p.add("name", failed, "is this machine online, and its resolver right?", "the address of %s was not found: %v", host, err)
		return false
	}
	private := slices.ContainsFunc(addresses, netip.Addr.IsPrivate)
	if strings.Contains(canonical, ".privatelink.") && !private {
		p.add("name", warning, "resolve names inside the virtual network, or through its private DNS zone", "%s has a private endpoint, but "+
			"resolves to the public address %v: the account's network rules may refuse this machine", host, addresses[0])
	}
	return true
}

// trusted looks at which host ends TLS: that host can repeat requests, or change them.
func (p *patient) trusted(u *url.URL) {
	switch {
	case wire.DirectURL(u):
	case u.Scheme != "https":
		p.add("tls", warning, "use https", "requests to %s are not encrypted: whatever is in between can read and repeat them", u.Host)
	default:
		p.add("tls", warning, "azconc doubts conflicts here by default, at one more request for some of them",
			"%s is not one of the service's own domains: a front door may end TLS there, and repeat requests", u.Hostname())
	}
}

// connected reports whether a server speaks what the scheme says. Its certificate is looked at with plain HTTP too: a port that wants TLS
// closes the connection, or answers with an error that nobody would take for that.
func (p *patient) connected(ctx context.Context, u *url.URL) bool {
	secure := u.Scheme == "https"
	port := cmp.Or(u.Port(), map[bool]string{true: "443", false: "80"}[secure])
	issuers, err := p.network.issuers(ctx, net.JoinHostPort(u.Hostname(), port), u.Hostname())
	_, wrong := errors.AsType[*tls.CertificateVerificationError](err)
	switch {
	case secure && err != nil, errors.Is(err, context.DeadlineExceeded):
		_, found, cure := onTheWay(err)
		p.add("tls", failed, cure, "%s: %s", u.Host, cmp.Or(found, err.Error()))
		return false
	case !secure && (err == nil || wrong):
		p.add("tls", failed, "the endpoint needs https://", "the server at %s speaks TLS, and the endpoint is http://", u.Host)
		return false
	case secure && wire.DirectURL(u) && !azaccount.PathStyle(u.Hostname()) && !slices.ContainsFunc(issuers, ofService):
		p.add("tls", warning, "every conflict has to be proved here: --confirm-conflicts always, or ConfirmAlways in Go",
			"the certificate of %s was issued by %s, not for the service: something in between ends TLS, and can repeat requests", u.Hostname(), strings.Join(issuers, ", "))
	}
	return true
}

// ofService reports whether an organization issues the certificates of the service (Microsoft Learn: "Azure Certificate Authority
// details").
func ofService(issuer string) bool {
	return strings.HasPrefix(issuer, "Microsoft") || strings.HasPrefix(issuer, "DigiCert") || strings.HasPrefix(issuer, "GlobalSign")
}

const proxyCure = "correct HTTPS_PROXY, or name the account's hosts in NO_PROXY"

// onTheWay describes the failure of a request that has no response of the service: what was found, what to do, and the layer that has
// failed, if it is known. found is "" for another failure.
func onTheWay(err error) (layer, found, cure string) {
	if refusal, ok := errors.AsType[*fail.ProxyError](err); ok {
		return "proxy", refusal.Error(), fail.HintOf(err)
	}
	if dial, ok := errors.AsType[*net.OpError](err); ok && dial.Op == "proxyconnect" {
		return "proxy", "the proxy does not take connections: " + dial.Err.Error(), proxyCure
	}
	if wrong, ok := errors.AsType[x509.HostnameError](err); ok {
		return "tls", "the certificate is for another host: " + wrong.Error(), "is the endpoint right? Something in between, or a wrong DNS record, may answer in the service's place"
	}
	if wrong, ok := errors.AsType[x509.CertificateInvalidError](err); ok {
		cure := "correct the certificate of whatever answers in the service's place"
		if wrong.Reason == x509.Expired {
			cure = "is the clock of this machine right? Otherwise renew the certificate of whatever answers in the service's place"
		}
		return "tls", "the certificate is not valid: " + wrong.Error(), cure
	}
	if wrong, ok := errors.AsType[x509.UnknownAuthorityError](err); ok {
		return "tls", wrong.Error(), "is the certificate of an inspecting proxy trusted by this machine?"
	}
	if _, ok := errors.AsType[tls.RecordHeaderError](err); ok {
		return "tls", "the server does not speak TLS", "is the endpoint's scheme right? A port of plain HTTP, such as Azurite's, needs http://"
	}
	if other := foreign(err); other != nil {
		found := "responses of " + other.Host + " did not come from the service"
		if other.Redirect != "" {
			found += ": something in between redirects to " + other.Redirect
		}
		if strings.HasPrefix(other.Server, "Windows-Azure-") || strings.HasPrefix(other.ContentType, "application/xml") {
			return "intermediary", "responses of " + other.Host + " have lost the service's headers, whose names begin with x-ms-", keptCure
		}
		return "intermediary", found, foreignCure
	}
	const reach = "is the port open in the firewall, and is the service up?"
	if errors.Is(err, context.DeadlineExceeded) {
		return "", fmt.Sprintf("no answer within %v", patience), reach
	}
	if broken, ok := errors.AsType[*net.OpError](err); ok {
		return "", broken.Error(), cmp.Or(fail.Hint(err, fail.Judge(err), "", ""), reach)
	}
	return "", "", ""
}

// foreign describes a response that did not come from the service; nil if there is none, or if it did.
func foreign(err error) *azerr.ForeignError {
	if refusal, ok := errors.AsType[*azcore.ResponseError](err); ok && refusal.RawResponse != nil {
		err = azerr.FromService(refusal.RawResponse)
	}
	other, _ := errors.AsType[*azerr.ForeignError](err)
	return other
}
