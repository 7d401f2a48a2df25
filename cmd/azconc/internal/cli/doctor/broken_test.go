package doctor

import (
	"bytes"
	"context"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"strings"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/azconc/azconc/cmd/azconc/internal/cli/fail"
	"github.com/azconc/azconc/pkg/aztest"
)

func TestEveryBrokenSetUpIsNamedWithItsCure(t *testing.T) {
	sas := func(query string) []string {
		return []string{"--account-name", "acct", "--sas-token", query + "&sig=c2lnbmF0dXJlc2lnbmF0dXJl"}
	}
	stale := func() middle {
		var first http.Header
		return func(r *http.Request, next func(*http.Request) (*http.Response, error)) (*http.Response, error) {
			resp, err := next(r)
			if err == nil && strings.Contains(r.URL.RawQuery, "comp=properties") {
				if first == nil {
					first = resp.Header
					first.Set("x-ms-client-request-id", r.Header.Get("x-ms-client-request-id"))
				}
				resp.Header = first
			}
			return resp, err
		}
	}
	for name, c := range map[string]struct {
		on      office
		between middle
		args    []string
		check   string
		status  status
		found   string
		cure    string
	}{
		"no account":                 {args: []string{}, check: "account", status: failed, found: "no account", cure: "--account-name"},
		"wrong key":                  {args: byKey, between: refuse(403, "AuthenticationFailed", "The MAC signature found in the HTTP request is not the same as any computed signature"), check: "blob", status: failed, found: "AuthenticationFailed", cure: "key"},
		"expired SAS":                {args: sas("ss=bqt&srt=sco&sp=r&se=1999-12-31T12:00:00Z"), between: refuse(403, "AuthenticationFailed", "Signature not valid in the specified time frame"), check: "blob", status: failed, found: "expired", cure: "ends later"},
		"SAS without writing":        {args: sas("ss=bqt&srt=sco&sp=rl&se=2999-12-31"), between: onWrites(refuse(403, "AuthorizationPermissionMismatch", "")), check: "blob create", status: failed, found: `grants "rl"`, cure: "missing permission"},
		"SAS of one service":         {args: sas("ss=b&srt=sco&sp=rwdlac&se=2999-12-31"), between: refuse(403, "AuthorizationServiceMismatch", ""), check: "queue", status: warning, found: "does not cover this service", cure: "ss"},
		"network rules":              {args: byKey, between: refuse(403, "AuthorizationFailure", ""), check: "blob", status: failed, found: "network rules", cure: "az storage account"},
		"keys disabled":              {args: byKey, between: refuse(403, "KeyBasedAuthenticationNotPermitted", ""), check: "blob", status: failed, found: "neither keys nor SAS", cure: "--auth-mode login"},
		"misspelt account":           {args: byKey, on: office{noAnswer: noName}, check: "name", status: failed, found: "acct.blob.core.windows.net has no address", cure: "account's name"},
		"private endpoint":           {args: byKey, on: office{canonical: "acct.privatelink.blob.core.windows.net."}, check: "name", status: warning, found: "public address", cure: "private DNS zone"},
		"TLS inspection":             {args: byKey, on: office{issuer: "Example Security Appliance"}, check: "tls", status: warning, found: "Example Security Appliance", cure: "--confirm-conflicts always"},
		"untrusted TLS":              {args: byKey, on: office{refused: x509.UnknownAuthorityError{}}, check: "tls", status: failed, found: "unknown authority", cure: "trusted"},
		"TLS for another host":       {args: byKey, on: office{refused: x509.HostnameError{Certificate: &x509.Certificate{DNSNames: []string{"login.example"}}, Host: "acct.blob.core.windows.net"}}, check: "tls", status: failed, found: "another host", cure: "DNS record"},
		"TLS expired":                {args: byKey, on: office{refused: x509.CertificateInvalidError{Reason: x509.Expired}}, check: "tls", status: failed, found: "expired", cure: "clock of this machine"},
		"HTTP on a TLS port":         {args: byKey, on: office{refused: plainHTTP}, check: "tls", status: failed, found: "does not speak TLS", cure: "http://"},
		"dead proxy":                 {args: byKey, on: office{through: "http://proxy:3128"}, between: broken(&net.OpError{Op: "proxyconnect", Net: "tcp", Err: errors.New("connection refused")}), check: "proxy", status: failed, found: "does not take connections", cure: "NO_PROXY"},
		"proxy with a password":      {args: byKey, on: office{through: "http://proxy:3128"}, between: refusing(407), check: "proxy", status: failed, found: "the proxy http://proxy:3128 refuses the connection: 407", cure: "user and the password"},
		"proxy that forbids":         {args: byKey, on: office{through: "http://proxy:3128"}, between: refusing(403), check: "proxy", status: failed, found: "403 Forbidden", cure: "operator"},
		"proxy without a way":        {args: byKey, on: office{through: "http://proxy:3128"}, between: refusing(502), check: "proxy", status: failed, found: "502 Bad Gateway", cure: "NO_PROXY"},
		"no proxy's URL":             {args: byKey, on: office{through: "http://[::1"}, check: "proxy", status: failed, found: "missing ']'", cure: "HTTPS_PROXY"},
		"resolver down":              {args: byKey, on: office{noAnswer: &net.DNSError{Err: "server misbehaving", Name: "acct.blob.core.windows.net"}}, check: "name", status: failed, found: "was not found", cure: "resolver"},
		"port closed":                {args: byKey, on: office{refused: &net.OpError{Op: "dial", Net: "tcp", Err: errors.New("i/o timeout")}}, check: "tls", status: failed, found: "i/o timeout", cure: "firewall"},
		"front door":                 {args: append(byKey, "--blob-endpoint", "https://acct.blob.example.com"), check: "tls", status: warning, found: "front door", cure: "doubts conflicts"},
		"gateway":                    {args: byKey, between: edit(func(h http.Header) { h.Set("Via", "1.1 gateway") }), check: "intermediary", status: warning, found: "Via: 1.1 gateway", cure: "--confirm-conflicts always"},
		"account disabled":           {args: byKey, between: refuse(403, "AccountIsDisabled", ""), check: "blob", status: failed, found: "AccountIsDisabled", cure: ""},
		"immutable container":        {args: byKey, between: edit(func(h http.Header) { h.Set("x-ms-has-immutability-policy", "true") }), check: "features", status: warning, found: "immutable", cure: "without a policy"},
		"redirect to a portal":       {args: byKey, between: portal, check: "intermediary", status: failed, found: "redirects to login.example", cure: "sign in"},
		"If-Match beside a key":      {args: byKey, between: having("If-Match", refuse(403, "AuthenticationFailed", "The MAC signature found in the HTTP request is not the same as any computed signature")), check: "intermediary", status: failed, found: "blob put --if-match was refused for its signature", cure: "headers of requests"},
		"If-None-Match beside a key": {args: byKey, between: having("If-None-Match", refuse(403, "AuthenticationFailed", "The MAC signature found in the HTTP request is not the same as any computed signature")), check: "intermediary", status: failed, found: "blob create was refused for its signature", cure: "headers of requests"},
		"headers of responses":       {args: byKey, between: edit(func(h http.Header) { clear(h); h.Set("Server", "Windows-Azure-Blob/1.0 Microsoft-HTTPAPI/2.0") }), check: "intermediary", status: failed, found: "have lost the service's headers", cure: "keep the headers"},
		"throttling":                 {args: byKey, between: refuse(503, "ServerBusy", ""), check: "blob", status: failed, found: "ServerBusy", cure: "send fewer"},
		"proxy":                      {args: byKey, on: office{through: "http://user:secret@proxy:3128"}, check: "proxy", status: warning, found: "proxy:3128", cure: "NO_PROXY=acct.blob"},
		"captive portal":             {args: byKey, between: edit(func(h http.Header) { clear(h) }), check: "intermediary", status: failed, found: "responses of acct.blob.core.windows.net did not come from the service", cure: "sign in"},
		"ETags removed":              {args: byKey, between: edit(func(h http.Header) { h.Del("Etag") }), check: "intermediary", status: failed, found: "removes ETags", cure: "headers"},
		"ETags weakened":             {args: byKey, between: edit(func(h http.Header) { h.Set("Etag", "W/"+h.Get("Etag")) }), check: "intermediary", status: failed, found: "changes ETags", cure: "compression"},
		"Dates removed":              {args: byKey, between: edit(func(h http.Header) { h.Del("Date") }), check: "intermediary", status: warning, found: "Date", cure: "headers"},
		"cache":                      {args: byKey, between: stale(), check: "intermediary", status: failed, found: "from a cache", cure: "turn its cache off"},
		"writes repeated":            {args: byKey, between: onWrites(twice), check: "intermediary", status: failed, found: "repeats writes", cure: "--confirm-conflicts always"},
		"conditions removed":         {args: byKey, between: unconditional, check: "intermediary", status: failed, found: "removes If-Match", cure: "headers of requests"},
		"clock 20 min ahead":         {args: byKey, between: dated(-20 * time.Minute), check: "clock", status: failed, found: "ahead of", cure: "NTP"},
		"clock a minute behind":      {args: byKey, between: dated(time.Minute), check: "clock", status: warning, found: "behind", cure: "NTP"},
		"no container":               {args: append(byKey, "--read-only"), between: missing, check: "container show", status: failed, found: "there is no container box", cure: "azconc container create"},
		"no queue":                   {args: append(byKey, "--queue", "orders"), check: "queue peek", status: failed, found: "there is no queue orders", cure: "azconc queue create"},
		"no table":                   {args: append(byKey, "--table", "orders"), check: "table query", status: failed, found: "there is no table orders", cure: "azconc table create"},
		"TLS on an HTTP port":        {args: append(byKey, "--blob-endpoint", "http://acct.blob.core.windows.net:443"), check: "tls", status: failed, found: "443 speaks TLS", cure: "https://"},
		"silent port":                {args: byKey, on: office{refused: context.DeadlineExceeded}, check: "tls", status: failed, found: "acct.blob.core.windows.net: no answer within 15s", cure: "firewall"},
		"silent service":             {args: byKey, between: silence, check: "blob", status: failed, found: "no answer within 15s", cure: "is the service up"},
		"connection reset":           {args: byKey, between: broken(&net.OpError{Op: "read", Net: "tcp", Err: syscall.ECONNRESET}), check: "blob", status: failed, found: "connection reset", cure: "firewall"},
		"nothing listens":            {args: byKey, between: broken(&net.OpError{Op: "dial", Net: "tcp", Err: syscall.ECONNREFUSED}), check: "table", status: failed, found: "connection refused", cure: "is the address right"},
		"SAS without files":          {args: sas("ss=bqt&srt=sco&sp=rwdlac&se=2999-12-31"), between: onFiles(refuse(403, "AuthorizationServiceMismatch", "")), check: "file", status: warning, found: "does not cover this service", cure: "ss"},
		"files disabled":             {args: byKey, between: onFiles(refuse(403, "FeatureNotSupportedForAccount", "")), check: "file", status: failed, found: "FeatureNotSupportedForAccount", cure: ""},
		"plain HTTP":                 {args: append(byKey, "--blob-endpoint", "http://acct.blob.core.windows.net"), check: "tls", status: warning, found: "not encrypted", cure: "https"},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				e, _ := examine(t, c.on, c.between, c.args...)
				f, found := e.find(c.check, c.found)
				if !found || f.Status != c.status || !strings.Contains(f.Cure, c.cure) {
					t.Fatalf("no %s of %s that says %q, and to do %q, in\n%s", c.status, c.check, c.found, c.cure, text(e))
				}
				if (e.Failed > 0) != (e.Outcome == "failed") {
					t.Errorf("%d failed, and the outcome is %s", e.Failed, e.Outcome)
				}
				if all := text(e); strings.Contains(all, "c2lnbmF0dXJl") || strings.Contains(all, aztest.Key) || strings.Contains(all, "secret@") {
					t.Errorf("a secret: %s", all)
				}
			})
		})
	}
}

func text(e examination) string {
	var b strings.Builder
	for _, f := range e.Checks {
		f.Text(&b)
	}
	return b.String()
}

// twice delivers a request twice, and returns the second response.
func twice(r *http.Request, next func(*http.Request) (*http.Response, error)) (*http.Response, error) {
	if r.Body == nil {
		r.Body = http.NoBody
	}
	body, err := io.ReadAll(r.Body)
	if err != nil {
		return nil, err
	}
	r.Body = io.NopCloser(bytes.NewReader(body))
	resp, err := next(r)
	if err != nil {
		return nil, err
	}
	if err := resp.Body.Close(); err != nil {
		return nil, err
	}
	r.Body = io.NopCloser(bytes.NewReader(body))
	return next(r)
}

func unconditional(r *http.Request, next func(*http.Request) (*http.Response, error)) (*http.Response, error) {
	r.Header.Del("If-Match")
	return next(r)
}

func broken(err error) middle {
	return func(*http.Request, func(*http.Request) (*http.Response, error)) (*http.Response, error) {
		return nil, err
	}
}

// silence takes requests and does not answer.
func silence(r *http.Request, _ func(*http.Request) (*http.Response, error)) (*http.Response, error) {
	<-r.Context().Done()
	return nil, r.Context().Err()
}

// refusing is a proxy that answers CONNECT with a status.
func refusing(status int) middle {
	answer := &http.Response{StatusCode: status, Status: fmt.Sprint(status, " ", http.StatusText(status))}
	return broken(fail.ProxyRefused(nil, &url.URL{Scheme: "http", Host: "proxy:3128"}, nil, answer))
}

func portal(r *http.Request, _ func(*http.Request) (*http.Response, error)) (*http.Response, error) {
	return &http.Response{StatusCode: http.StatusFound, Request: r, Body: http.NoBody, Header: http.Header{"Location": {"https://login.example/?u=1"}}}, nil
}

// having applies m to requests with a header alone.
func having(header string, m middle) middle {
	return func(r *http.Request, next func(*http.Request) (*http.Response, error)) (*http.Response, error) {
		if r.Header.Get(header) == "" {
			return next(r)
		}
		return m(r, next)
	}
}

func dated(by time.Duration) middle {
	return edit(func(h http.Header) { h.Set("Date", time.Now().Add(by).UTC().Format(http.TimeFormat)) })
}

func missing(r *http.Request, next func(*http.Request) (*http.Response, error)) (*http.Response, error) {
	if strings.Contains(r.URL.RawQuery, "restype=container") {
		return refuse(404, "ContainerNotFound", "")(r, next)
	}
	return next(r)
}
