package doctor

import (
	"bytes"
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"slices"
	"strings"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/spf13/cobra"

	"github.com/azconc/azconc/cmd/azconc/internal/cli"
	"github.com/azconc/azconc/cmd/azconc/internal/cli/fail"
	"github.com/azconc/azconc/cmd/azconc/internal/cli/flags"
	"github.com/azconc/azconc/pkg/aztest"
)

// office is a network as a test wants it.
type office struct {
	canonical string
	address   string
	noAnswer  error // of the resolver
	issuer    string
	refused   error
	through   string
}

func (o office) lookup(context.Context, string) (string, []netip.Addr, error) {
	if o.noAnswer != nil {
		return "", nil, o.noAnswer
	}
	address := "20.60.0.1"
	if o.address != "" {
		address = o.address
	}
	return o.canonical, []netip.Addr{netip.MustParseAddr(address)}, nil
}

func (o office) issuers(_ context.Context, address, _ string) ([]string, error) {
	if strings.HasSuffix(address, ":80") {
		return nil, plainHTTP
	}
	if o.issuer != "" {
		return []string{o.issuer}, o.refused
	}
	return []string{"Microsoft Corporation"}, o.refused
}

func (o office) proxy(*url.URL) (*url.URL, error) {
	if o.through == "" {
		return nil, nil
	}
	return url.Parse(o.through)
}

var plainHTTP = tls.RecordHeaderError{Msg: "first record does not look like a TLS handshake"}

var noName = &net.DNSError{Err: "no such host", IsNotFound: true}

// middle is what is between here and the service.
type middle func(r *http.Request, next func(*http.Request) (*http.Response, error)) (*http.Response, error)

type wireFunc func(*http.Request) (*http.Response, error)

func (f wireFunc) Do(r *http.Request) (*http.Response, error) { return f(r) }

func edit(change func(http.Header)) middle {
	return func(r *http.Request, next func(*http.Request) (*http.Response, error)) (*http.Response, error) {
		resp, err := next(r)
		if err == nil {
			change(resp.Header)
		}
		return resp, err
	}
}

// refuse answers every request with an error of the service.
func refuse(status int, code, detail string) middle {
	return func(r *http.Request, _ func(*http.Request) (*http.Response, error)) (*http.Response, error) {
		body := "<?xml version=\"1.0\"?><Error><Code>" + code + "</Code><Message>No.</Message><AuthenticationErrorDetail>" + detail + "</AuthenticationErrorDetail></Error>"
		return &http.Response{StatusCode: status, Request: r, Body: io.NopCloser(strings.NewReader(body)), Header: http.Header{
			"X-Ms-Error-Code": {code}, "X-Ms-Request-Id": {"r1"}, "X-Ms-Version": {"2026-02-06"}, "Content-Type": {"application/xml"},
			"Date": {time.Now().UTC().Format(http.TimeFormat)},
		}}, nil
	}
}

// onWrites applies m to the writes of blobs alone.
func onWrites(m middle) middle {
	return func(r *http.Request, next func(*http.Request) (*http.Response, error)) (*http.Response, error) {
		if r.Method != http.MethodPut {
			return next(r)
		}
		return m(r, next)
	}
}

// onFiles applies m to the File service alone.
func onFiles(m middle) middle {
	return func(r *http.Request, next func(*http.Request) (*http.Response, error)) (*http.Response, error) {
		if !strings.Contains(r.URL.Host, ".file.") {
			return next(r)
		}
		return m(r, next)
	}
}

// examination is what azconc doctor prints as JSON.
type examination struct {
	Outcome  string
	Cause    string
	Checks   []finding
	Failed   int
	Warnings int
	Requests int
}

// examine runs azconc doctor for a container box, on a service in memory that is reached as the account acct, or as args say.
func examine(t *testing.T, on office, between middle, args ...string) (examination, *aztest.Service) {
	t.Helper()
	streams, _, out, stderr := cli.TestStreams()
	s := run(t, streams, on, between, append([]string{"-o", "json"}, args...)...)
	var e examination
	if err := json.NewDecoder(bytes.NewReader(out.Bytes())).Decode(&e); err != nil {
		t.Fatalf("%q, %q: %v", out, stderr, err)
	}
	return e, s
}

// run is examine with any form of the result.
func run(t *testing.T, streams *cli.Streams, on office, between middle, args ...string) *aztest.Service {
	t.Helper()
	s := aztest.New(nil)
	if _, err := s.Container("box").Create(t.Context(), nil); err != nil {
		t.Fatal(err)
	}
	s.Reset()
	f := cli.NewFactory(streams, cli.Env{})
	defer f.Close()
	f.Wire = wireFunc(func(r *http.Request) (*http.Response, error) {
		next := func(r *http.Request) (*http.Response, error) {
			// The service in memory is an emulator, with the account in the path.
			account, kind, _ := strings.Cut(r.URL.Host, ".")
			inner := r.Clone(r.Context())
			for service, base := range map[string]string{"blob": s.BlobURL(), "queue": s.QueueURL(), "table": s.TableURL(), "file": s.FileURL()} {
				if strings.HasPrefix(kind, service+".") && account == "acct" {
					to, err := url.Parse(base)
					if err != nil {
						return nil, err
					}
					inner.URL.Scheme, inner.URL.Host, inner.Host = to.Scheme, to.Host, to.Host
					inner.URL.Path, inner.URL.RawPath = to.Path+r.URL.Path, ""
				}
			}
			resp, err := s.Do(inner)
			if resp != nil {
				resp.Request = r
			}
			return resp, err
		}
		if between == nil {
			return next(r)
		}
		return between(r, next)
	})
	root := &cobra.Command{Use: "azconc", SilenceErrors: true, SilenceUsage: true, PersistentPreRunE: f.Begin}
	root.SetFlagErrorFunc(flags.FlagError)
	f.AddFlags(root)
	root.AddCommand(newCmd(f, on))
	root.SetArgs(append([]string{"doctor", "box"}, args...))
	cmd, err := root.ExecuteContextC(t.Context())
	f.Report(t.Context(), cmd, err)
	return s
}

// byKey are the flags of the account.
var byKey = []string{"--account-name", "acct", "--account-key", aztest.Key}

func (e examination) find(check, text string) (finding, bool) {
	for _, c := range e.Checks {
		if c.Check == check && strings.Contains(c.Found, text) {
			return c, true
		}
	}
	return finding{}, false
}

// TestAHealthyAccountHasNoFindings: nothing fails, nothing is warned about, and nothing is left behind.
func TestAHealthyAccountHasNoFindings(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e, s := examine(t, office{}, nil, byKey...)
		if e.Outcome != "healthy" || e.Failed != 0 || e.Warnings != 0 || e.Requests != 17 {
			t.Errorf("%+v", e)
		}
		for _, check := range []string{"blob create", "blob get", "blob put --if-match", "blob lease", "blob delete", "blob list", "clock", "round trip", "queue", "table", "file"} {
			if _, found := e.find(check, ""); !found {
				t.Errorf("%s was not examined", check)
			}
		}
		for _, r := range s.Log() {
			if r.Op == "Delete Blob" && r.Status == http.StatusAccepted {
				return
			}
		}
		t.Error("the probe was not deleted")
	})
}

func TestReadOnlyWritesNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e, s := examine(t, office{}, nil, append(byKey, "--read-only")...)
		for _, r := range s.Log() {
			if r.Method != http.MethodGet && r.Method != http.MethodHead {
				t.Errorf("%s was sent", r.Op)
			}
		}
		if e.Outcome != "healthy" {
			t.Errorf("%+v", e)
		}
	})
}

// TestEveryBrokenSetUpIsNamedWithItsCure.
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
		"no account":            {args: []string{}, check: "account", status: failed, found: "no account", cure: "--account-name"},
		"wrong key":             {args: byKey, between: refuse(403, "AuthenticationFailed", "The MAC signature found in the HTTP request is not the same as any computed signature"), check: "blob", status: failed, found: "AuthenticationFailed", cure: "key"},
		"expired SAS":           {args: sas("ss=bqt&srt=sco&sp=r&se=1999-12-31T12:00:00Z"), between: refuse(403, "AuthenticationFailed", "Signature not valid in the specified time frame"), check: "blob", status: failed, found: "expired", cure: "ends later"},
		"SAS without writing":   {args: sas("ss=bqt&srt=sco&sp=rl&se=2999-12-31"), between: onWrites(refuse(403, "AuthorizationPermissionMismatch", "")), check: "blob create", status: failed, found: `grants "rl"`, cure: "missing permission"},
		"SAS of one service":    {args: sas("ss=b&srt=sco&sp=rwdlac&se=2999-12-31"), between: refuse(403, "AuthorizationServiceMismatch", ""), check: "queue", status: warning, found: "does not cover this service", cure: "ss"},
		"network rules":         {args: byKey, between: refuse(403, "AuthorizationFailure", ""), check: "blob", status: failed, found: "network rules", cure: "az storage account"},
		"keys disabled":         {args: byKey, between: refuse(403, "KeyBasedAuthenticationNotPermitted", ""), check: "blob", status: failed, found: "neither keys nor SAS", cure: "--auth-mode login"},
		"misspelt account":      {args: byKey, on: office{noAnswer: noName}, check: "name", status: failed, found: "acct.blob.core.windows.net has no address", cure: "account's name"},
		"private endpoint":      {args: byKey, on: office{canonical: "acct.privatelink.blob.core.windows.net."}, check: "name", status: warning, found: "public address", cure: "private DNS zone"},
		"TLS inspection":        {args: byKey, on: office{issuer: "Example Security Appliance"}, check: "tls", status: warning, found: "Example Security Appliance", cure: "--confirm-conflicts always"},
		"untrusted TLS":         {args: byKey, on: office{refused: x509.UnknownAuthorityError{}}, check: "tls", status: failed, found: "unknown authority", cure: "trusted"},
		"TLS for another host":  {args: byKey, on: office{refused: x509.HostnameError{Certificate: &x509.Certificate{DNSNames: []string{"login.example"}}, Host: "acct.blob.core.windows.net"}}, check: "tls", status: failed, found: "another host", cure: "DNS record"},
		"TLS expired":           {args: byKey, on: office{refused: x509.CertificateInvalidError{Reason: x509.Expired}}, check: "tls", status: failed, found: "expired", cure: "clock of this machine"},
		"HTTP on a TLS port":    {args: byKey, on: office{refused: plainHTTP}, check: "tls", status: failed, found: "does not speak TLS", cure: "http://"},
		"dead proxy":            {args: byKey, on: office{through: "http://proxy:3128"}, between: broken(&net.OpError{Op: "proxyconnect", Net: "tcp", Err: errors.New("connection refused")}), check: "proxy", status: failed, found: "does not take connections", cure: "NO_PROXY"},
		"proxy with a password": {args: byKey, on: office{through: "http://proxy:3128"}, between: refusing(407), check: "proxy", status: failed, found: "the proxy http://proxy:3128 refuses the connection: 407", cure: "user and the password"},
		"proxy that forbids":    {args: byKey, on: office{through: "http://proxy:3128"}, between: refusing(403), check: "proxy", status: failed, found: "403 Forbidden", cure: "operator"},
		"proxy without a way":   {args: byKey, on: office{through: "http://proxy:3128"}, between: refusing(502), check: "proxy", status: failed, found: "502 Bad Gateway", cure: "NO_PROXY"},
		"no proxy's URL":        {args: byKey, on: office{through: "http://[::1"}, check: "proxy", status: failed, found: "missing ']'", cure: "HTTPS_PROXY"},
		"resolver down":         {args: byKey, on: office{noAnswer: &net.DNSError{Err: "server misbehaving", Name: "acct.blob.core.windows.net"}}, check: "name", status: failed, found: "was not found", cure: "resolver"},
		"port closed":           {args: byKey, on: office{refused: &net.OpError{Op: "dial", Net: "tcp", Err: errors.New("i/o timeout")}}, check: "tls", status: failed, found: "i/o timeout", cure: "firewall"},
		"front door":            {args: append(byKey, "--blob-endpoint", "https://acct.blob.example.com"), check: "tls", status: warning, found: "front door", cure: "doubts conflicts"},
		"gateway":               {args: byKey, between: edit(func(h http.Header) { h.Set("Via", "1.1 gateway") }), check: "intermediary", status: warning, found: "Via: 1.1 gateway", cure: "--confirm-conflicts always"},
		"account disabled":      {args: byKey, between: refuse(403, "AccountIsDisabled", ""), check: "blob", status: failed, found: "AccountIsDisabled", cure: ""},
		"immutable container":   {args: byKey, between: edit(func(h http.Header) { h.Set("x-ms-has-immutability-policy", "true") }), check: "features", status: warning, found: "immutable", cure: "without a policy"},
		"redirect to a portal":  {args: byKey, between: portal, check: "intermediary", status: failed, found: "redirects to login.example", cure: "sign in"},
		"If-Match beside a key": {args: byKey, between: withIfMatch(refuse(403, "AuthenticationFailed", "The MAC signature found in the HTTP request is not the same as any computed signature")), check: "intermediary", status: failed, found: "removes If-Match", cure: "request headers"},
		"throttling":            {args: byKey, between: refuse(503, "ServerBusy", ""), check: "blob", status: failed, found: "ServerBusy", cure: "send fewer"},
		"proxy":                 {args: byKey, on: office{through: "http://user:secret@proxy:3128"}, check: "proxy", status: warning, found: "proxy:3128", cure: "NO_PROXY=acct.blob"},
		"captive portal":        {args: byKey, between: edit(func(h http.Header) { clear(h) }), check: "intermediary", status: failed, found: "responses of acct.blob.core.windows.net did not come from the service", cure: "sign in"},
		"ETags removed":         {args: byKey, between: edit(func(h http.Header) { h.Del("Etag") }), check: "intermediary", status: failed, found: "removes ETags", cure: "headers"},
		"ETags weakened":        {args: byKey, between: edit(func(h http.Header) { h.Set("Etag", "W/"+h.Get("Etag")) }), check: "intermediary", status: failed, found: "changes ETags", cure: "compression"},
		"Dates removed":         {args: byKey, between: edit(func(h http.Header) { h.Del("Date") }), check: "intermediary", status: warning, found: "Date", cure: "headers"},
		"cache":                 {args: byKey, between: stale(), check: "intermediary", status: failed, found: "from a cache", cure: "turn its cache off"},
		"writes repeated":       {args: byKey, between: onWrites(twice), check: "intermediary", status: failed, found: "repeats writes", cure: "--confirm-conflicts always"},
		"conditions removed":    {args: byKey, between: unconditional, check: "intermediary", status: failed, found: "removes If-Match", cure: "request headers"},
		"clock 20 min ahead":    {args: byKey, between: dated(-20 * time.Minute), check: "clock", status: failed, found: "ahead of", cure: "NTP"},
		"clock a minute behind": {args: byKey, between: dated(time.Minute), check: "clock", status: warning, found: "behind", cure: "NTP"},
		"no container":          {args: append(byKey, "--read-only"), between: missing, check: "container show", status: failed, found: "there is no container box", cure: "azconc container create"},
		"no queue":              {args: append(byKey, "--queue", "orders"), check: "queue peek", status: failed, found: "there is no queue orders", cure: "azconc queue create"},
		"no table":              {args: append(byKey, "--table", "orders"), check: "table query", status: failed, found: "there is no table orders", cure: "azconc table create"},
		"TLS on an HTTP port":   {args: append(byKey, "--blob-endpoint", "http://acct.blob.core.windows.net:443"), check: "tls", status: failed, found: "443 speaks TLS", cure: "https://"},
		"silent port":           {args: byKey, on: office{refused: context.DeadlineExceeded}, check: "tls", status: failed, found: "acct.blob.core.windows.net: no answer within 15s", cure: "firewall"},
		"silent service":        {args: byKey, between: silence, check: "blob", status: failed, found: "no answer within 15s", cure: "is the service up"},
		"connection reset":      {args: byKey, between: broken(&net.OpError{Op: "read", Net: "tcp", Err: syscall.ECONNRESET}), check: "blob", status: failed, found: "connection reset", cure: "firewall"},
		"nothing listens":       {args: byKey, between: broken(&net.OpError{Op: "dial", Net: "tcp", Err: syscall.ECONNREFUSED}), check: "table", status: failed, found: "connection refused", cure: "nothing listens"},
		"SAS without files":     {args: sas("ss=bqt&srt=sco&sp=rwdlac&se=2999-12-31"), between: onFiles(refuse(403, "AuthorizationServiceMismatch", "")), check: "file", status: warning, found: "does not cover this service", cure: "ss"},
		"files disabled":        {args: byKey, between: onFiles(refuse(403, "FeatureNotSupportedForAccount", "")), check: "file", status: failed, found: "FeatureNotSupportedForAccount", cure: ""},
		"plain HTTP":            {args: append(byKey, "--blob-endpoint", "http://acct.blob.core.windows.net"), check: "tls", status: warning, found: "not encrypted", cure: "https"},
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

// withIfMatch applies m to requests with If-Match alone.
func withIfMatch(m middle) middle {
	return func(r *http.Request, next func(*http.Request) (*http.Response, error)) (*http.Response, error) {
		if r.Header.Get("If-Match") == "" {
			return next(r)
		}
		return m(r, next)
	}
}

// TestTheCauseComesFirst: of several failures the one that is nearest to this machine is first, and the others that it explains are
// marked and have no cure of their own.
func TestTheCauseComesFirst(t *testing.T) {
	for name, c := range map[string]struct {
		on      office
		between middle
		cause   string
		follow  int
	}{
		"clock":         {between: both(refuse(403, "AuthenticationFailed", "Request date header too old"), dated(-20*time.Minute)), cause: "clock", follow: 5},
		"dead proxy":    {on: office{through: "http://proxy:3128"}, between: broken(&net.OpError{Op: "proxyconnect", Net: "tcp", Err: errors.New("refused")}), cause: "proxy", follow: 4},
		"wrong key":     {between: refuse(403, "AuthenticationFailed", "The MAC signature found in the HTTP request is not the same as any computed signature"), cause: "blob", follow: 4},
		"misspelt name": {on: office{noAnswer: noName}, cause: "name", follow: 3},
		"portal":        {between: portal, cause: "intermediary", follow: 4},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				e, _ := examine(t, c.on, c.between, byKey...)
				follow := 0
				for _, f := range e.Checks {
					if f.Follows {
						follow++
					}
				}
				if e.Cause != c.cause || e.Checks[0].Check != c.cause || e.Checks[0].Follows || follow < c.follow {
					t.Errorf("the cause is %q, and %d follow from it, want %q and %d or more:\n%s", e.Cause, follow, c.cause, c.follow, text(e))
				}
				if said := text(e); strings.Count(said, "do: ") > 1+e.Warnings {
					t.Errorf("what follows has cures:\n%s", said)
				}
			})
		})
	}
}

// A proxy that removes If-Match does not explain that a queue is missing.
func TestWhatTheCauseDoesNotExplainKeepsItsCure(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e, _ := examine(t, office{}, unconditional, append(byKey, "--queue", "orders")...)
		f, found := e.find("queue peek", "no queue orders")
		if e.Cause != "intermediary" || !found || f.Follows || f.Cure == "" {
			t.Errorf("the cause is %q, and\n%s", e.Cause, text(e))
		}
	})
}

// An examination of a service that does not answer takes a minute. What is known is printed meanwhile, the cause before what follows from
// it, and the error at the end names the cause again.
func TestTextIsPrintedAsItComes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		streams, _, out, stderr := cli.TestStreams()
		var printed []string // when a request is sent
		run(t, streams, office{}, func(r *http.Request, next func(*http.Request) (*http.Response, error)) (*http.Response, error) {
			printed = append(printed, out.String())
			return silence(r, next)
		}, byKey...)
		const (
			account = "ok       account              acct, by key\n"
			blob    = "failed   blob                 no answer within 15s\n" +
				"                              do: is the port open in the firewall, and is the service up?\n"
			queue = "failed   queue                follows: no answer within 15s\n"
			table = "failed   table                follows: no answer within 15s\n"
			file  = "failed   file                 follows: no answer within 15s\n"
		)
		want := []string{account, account + blob, account + blob + queue, account + blob + queue + table}
		if !slices.Equal(printed, want) || out.String() != want[3]+file {
			t.Errorf("%q, want %q, and at the end\n%s", printed, want, out)
		}
		if said := stderr.String(); said != "azconc: doctor box: 4 of 5 checks failed; the cause: blob: no answer within 15s\n" {
			t.Errorf("%q", said)
		}
	})
}

// both applies outer to the responses of inner.
func both(inner, outer middle) middle {
	return func(r *http.Request, next func(*http.Request) (*http.Response, error)) (*http.Response, error) {
		return outer(r, func(r *http.Request) (*http.Response, error) { return inner(r, next) })
	}
}

// TestAnExaminationEnds: a service that does not answer costs 15 s a request, and not more.
func TestAnExaminationEnds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		began := time.Now()
		e, _ := examine(t, office{}, silence, byKey...)
		// A request to each service: what else the Blob service would be asked is left out.
		if took := time.Since(began); e.Failed != 4 || took != 4*patience {
			t.Errorf("%d failed after %v", e.Failed, took)
		}
	})
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
