package doctor

import (
	"bytes"
	"context"
	"crypto/tls"
	"encoding/json"
	"errors"
	"io"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/spf13/cobra"

	"github.com/azconc/azconc/cmd/azconc/internal/cli"
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

// TestTheRightsOfAVerbAreComparedWithThoseOfASAS: nobody could tell which permissions a verb needs.
func TestTheRightsOfAVerbAreComparedWithThoseOfASAS(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		sas := func(query string) []string {
			return []string{"--account-name", "acct", "--sas-token", query + "&sv=2024-11-04&se=2099-01-01&sig=c2ln", "--for", "queue consume", "--read-only"}
		}
		for _, c := range []struct{ sas, want string }{
			{"ss=qt&srt=o&sp=pau", ""}, {"sp=pu&sr=c", "table"}, {"ss=qt&srt=o&sp=au", "queue"}, {"ss=q&srt=o&sp=pau", "table"}, {"ss=qt&srt=c&sp=pau", "queue"},
		} {
			e, _ := examine(t, office{}, nil, sas(c.sas)...)
			f, found := e.find("rights "+c.want, "the SAS lacks")
			if c.want != "" && (!found || f.Status != failed || f.Cure == "") {
				t.Errorf("%s: %s, want that rights of %s are missing", c.sas, text(e), c.want)
			}
			if _, there := e.find("rights queue", "a SAS with srt=o sp=pau, or the role Storage Queue Data Contributor"); !there || c.want == "" && strings.Contains(text(e), "the SAS lacks") {
				t.Errorf("%s: %s", c.sas, text(e))
			}
		}
	})
}
