package auth

import (
	"cmp"
	"maps"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/azconc/azconc/pkg/aztest/internal/storage"
)

// checkSharedKey verifies "account:signature" and the date of the request.
func (a *Authority) checkSharedKey(r *Request, scheme, credential string) *Denial {
	account, signature, ok := strings.Cut(strings.TrimSpace(credential), ":")
	if !ok || signature == "" {
		return malformed()
	}
	h := storage.Canonical(r.HTTP.Header)
	date := cmp.Or(h.Get("x-ms-date"), h.Get("Date"))
	sent, err := http.ParseTime(date)
	switch {
	case account != a.account:
		return failed("The account of the Authorization header is %q, and that of the URL %q.", account, a.account)
	case date == "":
		return failed("Request date header not specified")
	case err != nil:
		return failed("Request date header is invalid: '%s'", date)
	case time.Since(sent) > tooOld || time.Until(sent) > tooOld:
		return failed("Request date header too old: '%s'", date)
	}
	texts := stringsToSign(a.account, r.HTTP, r.Service, scheme)
	if slices.ContainsFunc(texts, func(text string) bool { return a.signed(text, signature) }) {
		return nil
	}
	return failed("The MAC signature found in the HTTP request '%s' is not the same as any computed signature. Server used following string to sign: '%s'.", signature, texts[0])
}

// Sign gives a request a date and the account's signature, as a client with the key does.
func (a *Authority) Sign(r *http.Request, service string) {
	r.Header.Set("X-Ms-Date", time.Now().UTC().Format(http.TimeFormat))
	texts := stringsToSign(a.account, r, service, "SharedKey")
	r.Header.Set("Authorization", "SharedKey "+a.account+":"+a.sign(texts[0]))
}

// stringsToSign returns the strings that a request may have signed: one to the Table service, and to the others several, which differ
// in the order of the x-ms headers: the service sorts as .NET does for US English, and SDKs sort by that or by bytes.
func stringsToSign(account string, r *http.Request, service, scheme string) (texts []string) {
	h := storage.Canonical(r.Header)
	if service == storage.Table {
		return []string{tableString(account, r, h, scheme)}
	}
	length, date := "", h.Get("Date")
	if r.ContentLength > 0 {
		length = strconv.FormatInt(r.ContentLength, 10)
	}
	if h.Get("x-ms-date") != "" {
		date = ""
	}
	standard := strings.Join([]string{
		r.Method, h.Get("Content-Encoding"), h.Get("Content-Language"), length, h.Get("Content-MD5"), h.Get("Content-Type"), date,
		h.Get("If-Modified-Since"), h.Get("If-Match"), h.Get("If-None-Match"), h.Get("If-Unmodified-Since"), h.Get("Range"),
	}, "\n") + "\n"
	resource := canonicalResource(account, r.URL)
	for _, order := range []func(string, string) int{strings.Compare, byCulture} {
		if text := standard + canonicalHeaders(h, order) + resource; !slices.Contains(texts, text) {
			texts = append(texts, text)
		}
	}
	return texts
}

func canonicalHeaders(h http.Header, order func(x, y string) int) string {
	var names []string
	for name := range h {
		if strings.HasPrefix(name, "X-Ms-") {
			names = append(names, strings.ToLower(name))
		}
	}
	slices.SortFunc(names, order)
	var b strings.Builder
	for _, name := range names {
		b.WriteString(name + ":" + strings.TrimSpace(strings.Join(h.Values(name), ",")) + "\n")
	}
	return b.String()
}

// byCulture compares names of headers as .NET does: hyphens do not count, and the underscore is before digits.
func byCulture(x, y string) int {
	weights := strings.NewReplacer("-", "", "_", "!")
	return cmp.Or(strings.Compare(weights.Replace(x), weights.Replace(y)), strings.Compare(x, y))
}

// canonicalResource has the account's name twice if the path begins with it, as with an emulator.
func canonicalResource(account string, u *url.URL) string {
	path := cmp.Or(u.EscapedPath(), "/")
	values := map[string][]string{}
	for _, p := range parseQuery(u.RawQuery) {
		name := strings.ToLower(p.name)
		values[name] = append(values[name], p.value)
	}
	var b strings.Builder
	b.WriteString("/" + account + path)
	for _, name := range slices.Sorted(maps.Keys(values)) {
		slices.Sort(values[name])
		b.WriteString("\n" + name + ":" + strings.Join(values[name], ","))
	}
	return b.String()
}

func tableString(account string, r *http.Request, h http.Header, scheme string) string {
	date := cmp.Or(h.Get("x-ms-date"), h.Get("Date"))
	resource := "/" + account + cmp.Or(r.URL.EscapedPath(), "/")
	if comp := parseQuery(r.URL.RawQuery).get("comp"); comp != "" {
		resource += "?comp=" + comp
	}
	if scheme == "SharedKeyLite" {
		return date + "\n" + resource
	}
	return strings.Join([]string{r.Method, h.Get("Content-MD5"), h.Get("Content-Type"), date, resource}, "\n")
}

// pairs is a query in the order in which it was sent.
type pairs []pair

type pair struct{ name, value string }

// parseQuery differs from url.ParseQuery in that it refuses nothing: a semicolon or a stray percent sign stays as it is.
func parseQuery(raw string) (all pairs) {
	for part := range strings.SplitSeq(raw, "&") {
		if part == "" {
			continue
		}
		name, value, _ := strings.Cut(part, "=")
		all = append(all, pair{unescape(name), unescape(value)})
	}
	return all
}

func unescape(s string) string {
	if text, err := url.QueryUnescape(s); err == nil {
		return text
	}
	return s
}

// get returns the first value of a parameter, whose name is in lower case.
func (p pairs) get(name string) string {
	for _, one := range p {
		if strings.EqualFold(one.name, name) {
			return one.value
		}
	}
	return ""
}

func (p pairs) has(name string) bool {
	return slices.ContainsFunc(p, func(one pair) bool { return strings.EqualFold(one.name, name) })
}
