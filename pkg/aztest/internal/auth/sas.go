package auth

import (
	"bytes"
	"encoding/xml"
	"net/http"
	"net/netip"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/azconc/azconc/pkg/aztest/internal/storage"
)

// Grant is what a SAS permits.
type Grant struct {
	service     string
	account     bool   // an account SAS; otherwise a service SAS
	permissions string // letters
	types       string // of resources, for an account SAS: s, c and o
	table       string // of a service SAS
	look        Resources
}

// oldestSAS is the oldest version of SAS strings that is understood.
const oldestSAS = "2015-04-05"

var versionForm = regexp.MustCompile(`^\d{4}-\d\d-\d\d$`)

func (a *Authority) checkSAS(r *Request, q pairs, look Resources) (*Grant, *Denial) {
	version := q.get("sv")
	switch {
	case version == "":
		return nil, failed("sv is mandatory. Cannot be empty")
	case !versionForm.MatchString(version) || version < oldestSAS:
		return nil, failed("sv is not a version from %s on: %s", oldestSAS, version)
	case q.has("skoid"):
		return nil, failed("There are no user delegation keys here. Use an account SAS or a service SAS.")
	case q.has("spk"), q.has("srk"), q.has("epk"), q.has("erk"):
		return nil, &Denial{Status: http.StatusNotImplemented, Code: "NotImplemented", Message: "The in-memory service does not implement ranges of entities in a SAS."}
	}
	g := &Grant{service: r.Service, account: q.has("ss") || q.has("srt"), permissions: q.get("sp"), types: q.get("srt"), table: q.get("tn"), look: look}
	text := a.serviceString(r, q, version)
	if g.account {
		text = a.accountString(q, version)
	}
	if text == "" {
		return nil, failed("sr is not valid for this resource: %s", q.get("sr"))
	}
	if !a.signed(text, q.get("sig")) {
		return nil, failed("Signature did not match. String to sign used was %s", text)
	}
	start, expiry := q.get("st"), q.get("se")
	if id := q.get("si"); id != "" && !g.account {
		p, there := policyNamed(look.Policies(r.Service, r.Container), id)
		if !there {
			return nil, failed("The signed identifier is not one of the resource: %s", id)
		}
		for _, field := range []struct{ sas, policy *string }{{&start, &p.Start}, {&expiry, &p.Expiry}, {&g.permissions, &p.Permission}} {
			if *field.sas != "" && *field.policy != "" {
				return nil, failed("A field of the signed identifier %s is in the SAS, too.", id)
			}
			*field.sas += *field.policy
		}
	}
	if d := within(start, expiry); d != nil {
		return nil, d
	}
	if g.permissions == "" {
		return nil, failed("sp is mandatory. Cannot be empty")
	}
	if d := fromWhere(r.HTTP, q); d != nil {
		return nil, d
	}
	if g.account && !strings.Contains(q.get("ss"), r.Service[:1]) {
		return nil, denied("AuthorizationServiceMismatch", "service")
	}
	return g, g.Check(r)
}

func (a *Authority) accountString(q pairs, version string) string {
	fields := []string{a.account, q.get("sp"), q.get("ss"), q.get("srt"), q.get("st"), q.get("se"), q.get("sip"), q.get("spr"), version}
	if version >= "2020-12-06" {
		fields = append(fields, q.get("ses"))
	}
	return strings.Join(fields, "\n") + "\n"
}

// serviceString returns the string to sign of a service SAS, whose fields depend on the service and the version, or "" if
// sr does not fit the service. Values are signed as they are after decoding.
func (a *Authority) serviceString(r *Request, q pairs, version string) string {
	name := "/" + r.Service + "/" + a.account + "/" + r.Container
	sr := q.get("sr")
	switch {
	case r.Service == storage.Table:
		name = "/table/" + a.account + "/" + strings.ToLower(q.get("tn"))
		if r.Op != transaction && !strings.EqualFold(r.Container, q.get("tn")) {
			return ""
		}
	case r.Service == storage.Blob && slices.Contains([]string{"b", "bs", "bv"}, sr), r.Service == storage.File && sr == "f":
		name += "/" + r.Path
	case r.Service == storage.Blob && sr != "c", r.Service == storage.File && sr != "s":
		return ""
	}
	fields := []string{q.get("sp"), q.get("st"), q.get("se"), name, q.get("si"), q.get("sip"), q.get("spr"), version}
	if r.Service == storage.Blob && version >= "2018-11-09" {
		snapshot := ""
		if sr == "bs" {
			snapshot = q.get("snapshot")
		}
		fields = append(fields, sr, snapshot)
	}
	if r.Service == storage.Blob && version >= "2020-12-06" {
		fields = append(fields, q.get("ses"))
	}
	switch r.Service {
	case storage.Blob, storage.File:
		for _, override := range Overrides {
			fields = append(fields, q.get(override.Parameter))
		}
	case storage.Table:
		fields = append(fields, "", "", "", "")
	}
	return strings.Join(fields, "\n")
}

// Overrides are the parameters of a service SAS that replace headers of the response to a read.
var Overrides = []struct{ Parameter, Header string }{
	{"rscc", "Cache-Control"}, {"rscd", "Content-Disposition"}, {"rsce", "Content-Encoding"}, {"rscl", "Content-Language"}, {"rsct", "Content-Type"},
}

// within checks the times of a SAS. The service accepts the three forms of ISO 8601 that timeForms has.
func within(start, expiry string) *Denial {
	if expiry == "" {
		return failed("se is mandatory. Cannot be empty")
	}
	ends, ok := parseTime(expiry)
	if !ok {
		return failed("se is not a time: %s", expiry)
	}
	begins, ok := parseTime(start)
	if start != "" && !ok {
		return failed("st is not a time: %s", start)
	}
	now := time.Now().UTC()
	if now.Before(begins) || !now.Before(ends) {
		return failed("Signature not valid in the specified time frame: Start [%s] - Expiry [%s] - Current [%s]",
			begins.Format(http.TimeFormat), ends.Format(http.TimeFormat), now.Format(http.TimeFormat))
	}
	return nil
}

var timeForms = []string{time.RFC3339Nano, "2006-01-02T15:04Z07:00", time.DateOnly}

func parseTime(text string) (time.Time, bool) {
	for _, form := range timeForms {
		if at, err := time.Parse(form, text); err == nil {
			return at.UTC(), true
		}
	}
	return time.Time{}, false
}

// fromWhere checks the protocol and the address of the client. A client in the same process has none.
func fromWhere(r *http.Request, q pairs) *Denial {
	if q.get("spr") == "https" && r.TLS == nil {
		return denied("AuthorizationProtocolMismatch", "protocol")
	}
	allowed := q.get("sip")
	peer, err := netip.ParseAddrPort(r.RemoteAddr)
	if allowed == "" || err != nil {
		return nil
	}
	first, last, ranged := strings.Cut(allowed, "-")
	if !ranged {
		last = first
	}
	low, err1 := netip.ParseAddr(first)
	high, err2 := netip.ParseAddr(last)
	if at := peer.Addr().Unmap(); err1 != nil || err2 != nil || at.Compare(low) < 0 || at.Compare(high) > 0 {
		return denied("AuthorizationSourceIPMismatch", "source IP")
	}
	return nil
}

type policy struct{ Start, Expiry, Permission string }

// policyNamed finds one of a resource's stored access policies.
func policyNamed(stored []byte, id string) (policy, bool) {
	var list struct {
		Items []struct {
			ID     string `xml:"Id"`
			Policy policy `xml:"AccessPolicy"`
		} `xml:"SignedIdentifier"`
	}
	if err := xml.Unmarshal(bytes.TrimPrefix(stored, []byte("\ufeff")), &list); err != nil {
		return policy{}, false
	}
	for _, one := range list.Items {
		if one.ID == id {
			return one.Policy, true
		}
	}
	return policy{}, false
}
