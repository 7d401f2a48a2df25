package auth

import (
	"net/http"
	"net/url"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/azconc/azconc/pkg/aztest/internal/storage"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

const (
	account = "account"
	key     = "a2V5IG9mIHRoZSBhY2NvdW50"
)

// state is the resources of an account: none is public, and each has one policy.
type state struct{}

func (state) Policies(string, string) []byte {
	return []byte(`<SignedIdentifiers><SignedIdentifier><Id>p</Id><AccessPolicy><Permission>r</Permission></AccessPolicy></SignedIdentifier></SignedIdentifiers>`)
}
func (state) Public(string) string                 { return "" }
func (state) Exists(service, in, path string) bool { return path == "there" }

// ask returns the code with which a SAS is refused, or "".
func ask(t *testing.T, a *Authority, r *Request, q url.Values, peer string) string {
	t.Helper()
	r.HTTP = &http.Request{Method: http.MethodGet, URL: &url.URL{Path: "/account/box/blob", RawQuery: q.Encode()}, Header: http.Header{}, RemoteAddr: peer}
	_, d := a.Check(r, state{})
	if d == nil {
		return ""
	}
	return d.Code
}

func authority(t *testing.T) *Authority {
	t.Helper()
	a, err := New(account, key)
	if err != nil {
		t.Fatal(err)
	}
	return a
}

// TestEachVersionHasItsString signs by hand what the REST reference describes for each version of a SAS. A signature of the string
// of another version is refused.
func TestEachVersionHasItsString(t *testing.T) {
	a := authority(t)
	in := time.Now().Add(time.Hour).UTC().Format("2006-01-02T15:04Z") // in minutes, as some write it
	head := "r\n\n" + in + "\n/%/account/box\n\n\n\n"
	rsc := "\n\n\n\n\n"
	for _, tt := range []struct {
		service, sr, version, text string
	}{
		{storage.Blob, "c", "2015-04-05", head + "2015-04-05" + rsc},
		{storage.Blob, "c", "2018-11-09", head + "2018-11-09\nc\n" + rsc},
		{storage.Blob, "c", "2020-12-06", head + "2020-12-06\nc\n\n" + rsc},
		{storage.Blob, "b", "2020-12-06", strings.Replace(head, "box", "box/blob", 1) + "2020-12-06\nb\n\n" + rsc},
		{storage.File, "s", "2015-04-05", head + "2015-04-05" + rsc},
		{storage.File, "f", "2022-11-02", strings.Replace(head, "box", "box/blob", 1) + "2022-11-02" + rsc},
		{storage.Queue, "", "2022-11-02", head + "2022-11-02"},
		{storage.Table, "", "2022-11-02", head + "2022-11-02\n\n\n\n"},
	} {
		text := strings.Replace(tt.text, "%", tt.service, 1)
		q := url.Values{"sp": {"r"}, "se": {in}, "sv": {tt.version}, "sig": {a.sign(text)}}
		if tt.sr != "" {
			q.Set("sr", tt.sr)
		}
		r := &Request{Service: tt.service, Op: "Get Blob", Container: "box", Path: "blob"}
		switch tt.service {
		case storage.Table:
			q.Set("tn", "Box")
			r.Op = "Query Entities"
		case storage.Queue:
			r.Op = "Peek Messages"
		}
		if code := ask(t, a, r, q, ""); code != "" {
			t.Errorf("%s %s of %s: %s", tt.service, tt.sr, tt.version, code)
		}
		q.Set("sv", "2019-02-02")
		if code := ask(t, a, r, q, ""); code != "AuthenticationFailed" {
			t.Errorf("%s %s of %s with another version: %s", tt.service, tt.sr, tt.version, code)
		}
	}
	for version, end := range map[string]string{"2015-04-05": "\n", "2020-12-06": "\n\n"} {
		q := url.Values{"sp": {"r"}, "ss": {"b"}, "srt": {"o"}, "se": {in}, "sv": {version}, "sig": {a.sign("account\nr\nb\no\n\n" + in + "\n\n\n" + version + end)}}
		if code := ask(t, a, &Request{Service: storage.Blob, Op: "Get Blob", Container: "box", Path: "blob"}, q, ""); code != "" {
			t.Errorf("an account SAS of %s: %s", version, code)
		}
	}
}

// accountQuery is an account SAS with more fields.
func accountQuery(a *Authority, permissions, from, protocol string) url.Values {
	in := time.Now().Add(time.Hour).UTC().Format(time.RFC3339)
	return url.Values{"sp": {permissions}, "ss": {"bt"}, "srt": {"sco"}, "se": {in}, "sip": {from}, "spr": {protocol}, "sv": {"2018-11-09"},
		"sig": {a.sign("account\n" + permissions + "\nbt\nsco\n\n" + in + "\n" + from + "\n" + protocol + "\n2018-11-09\n")}}
}

func TestASASIsForAPlaceAndAProtocol(t *testing.T) {
	a := authority(t)
	for _, tt := range []struct{ from, protocol, peer, want string }{
		{"", "", "127.0.0.1:1", ""},
		{"127.0.0.1", "https,http", "127.0.0.1:1", ""},
		{"127.0.0.0-127.0.0.9", "", "127.0.0.1:1", ""},
		{"10.0.0.1", "", "127.0.0.1:1", "AuthorizationSourceIPMismatch"},
		{"10.0.0.1", "", "", ""}, // a client in the same process has no address
		{"", "https", "127.0.0.1:1", "AuthorizationProtocolMismatch"},
	} {
		if code := ask(t, a, &Request{Service: storage.Blob, Op: "Get Blob", Container: "box", Path: "blob"}, accountQuery(a, "r", tt.from, tt.protocol), tt.peer); code != tt.want {
			t.Errorf("%+v: %q", tt, code)
		}
	}
}

// TestEachOperationNeedsItsLetter has operations with letters of their own, and those that need two.
func TestEachOperationNeedsItsLetter(t *testing.T) {
	a := authority(t)
	for _, tt := range []struct{ service, op, path, letters, want string }{
		{storage.Blob, "Put Blob", "new", "c", ""},
		{storage.Blob, "Put Blob", "there", "c", "UnauthorizedBlobOverwrite"},
		{storage.Blob, "Put Blob", "there", "w", ""},
		{storage.Blob, "Append Block", "log", "a", ""},
		{storage.Blob, "Set Blob Tags", "x", "w", "AuthorizationPermissionMismatch"},
		{storage.Blob, "Set Blob Tags", "x", "t", ""},
		{storage.Blob, "Delete Blob", "x", "rw", "AuthorizationPermissionMismatch"},
		{storage.Blob, "Set Container ACL", "", "rwdlac", "AuthorizationFailure"},
		{storage.Table, "Insert Or Merge Entity", "", "a", "AuthorizationPermissionMismatch"},
		{storage.Table, "Insert Or Merge Entity", "", "au", ""},
		{storage.Table, "Query Entities", "", "a", "AuthorizationPermissionMismatch"},
	} {
		if code := ask(t, a, &Request{Service: tt.service, Op: tt.op, Container: "box", Path: tt.path}, accountQuery(a, tt.letters, "", ""), ""); code != tt.want {
			t.Errorf("%s %s with %s: %q, want %q", tt.op, tt.path, tt.letters, code, tt.want)
		}
	}
}

// TestHeadersAreSortedAsTheServiceSorts: in its order the underscore is before digits, and hyphens do not count.
func TestHeadersAreSortedAsTheServiceSorts(t *testing.T) {
	h := http.Header{"X-Ms-Meta-A_b": {"1"}, "X-Ms-Meta-A1": {"2"}, "X-Ms-Meta-A": {"3"}, "Other": {"4"}}
	if got := canonicalHeaders(h, byCulture); got != "x-ms-meta-a:3\nx-ms-meta-a_b:1\nx-ms-meta-a1:2\n" {
		t.Errorf("by culture: %q", got)
	}
	if got := canonicalHeaders(h, strings.Compare); got != "x-ms-meta-a:3\nx-ms-meta-a1:2\nx-ms-meta-a_b:1\n" {
		t.Errorf("by bytes: %q", got)
	}
}

// TestAResourceIsSignedAsItWasSent keeps the escapes of the path, and decodes and sorts the query.
func TestAResourceIsSignedAsItWasSent(t *testing.T) {
	u, err := url.Parse("http://127.0.0.1:1/account/box/a%20b+c%2Fd?timeout=5&Comp=list&include=b&include=a&prefix=x%20y")
	if err != nil {
		t.Fatal(err)
	}
	if got, want := canonicalResource(account, u), "/account/account/box/a%20b+c%2Fd\ncomp:list\ninclude:a,b\nprefix:x y\ntimeout:5"; got != want {
		t.Errorf("%q, want %q", got, want)
	}
}
