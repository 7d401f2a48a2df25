package auth

import (
	"cmp"
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
	h := headers{r.HTTP.Header}
	date := cmp.Or(h.get("x-ms-date"), h.get("Date"))
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
	var texts []string
	if r.Service == storage.Table {
		texts = tableStrings(a.account, r.HTTP, scheme, date)
	} else {
		texts = stringsToSign(a.account, r.HTTP)
	}
	for _, text := range texts {
		if a.signed(text, signature) {
			return nil
		}
	}
	return failed("The MAC signature found in the HTTP request '%s' is not the same as any computed signature. Server used following string to sign: '%s'.", signature, texts[0])
}

// Sign gives a request a date and the account's signature, as a client with the key does.
func (a *Authority) Sign(r *http.Request, service string) {
	date := time.Now().UTC().Format(http.TimeFormat)
	r.Header.Set("X-Ms-Date", date)
	texts := stringsToSign(a.account, r)
	if service == storage.Table {
		texts = tableStrings(a.account, r, "SharedKey", date)
	}
	r.Header.Set("Authorization", "SharedKey "+a.account+":"+a.sign(texts[0]))
}

// headers are read by any spelling of their names: the SDK puts some in lower case into the map.
type headers struct{ http.Header }

func (h headers) get(name string) string {
	for key, values := range h.Header {
		if strings.EqualFold(key, name) && len(values) > 0 {
			return strings.TrimSpace(values[0])
		}
	}
	return ""
}

// stringsToSign returns the strings that a request to the Blob, Queue or File service may have signed. They differ in the
// order of the x-ms headers: the service sorts as .NET does for US English, and SDKs sort by that or by bytes.
func stringsToSign(account string, r *http.Request) (texts []string) {
	h := headers{r.Header}
	length, date := "", h.get("Date")
	if r.ContentLength > 0 {
		length = strconv.FormatInt(r.ContentLength, 10)
	}
	if h.get("x-ms-date") != "" {
		date = ""
	}
	standard := strings.Join([]string{
		r.Method, h.get("Content-Encoding"), h.get("Content-Language"), length, h.get("Content-MD5"), h.get("Content-Type"), date,
		h.get("If-Modified-Since"), h.get("If-Match"), h.get("If-None-Match"), h.get("If-Unmodified-Since"), h.get("Range"),
	}, "\n") + "\n"
	resource := canonicalResource(account, r.URL)
	for _, order := range []func(string, string) int{strings.Compare, byCulture} {
		if text := standard + canonicalHeaders(r.Header, order) + resource; !slices.Contains(texts, text) {
			texts = append(texts, text)
		}
	}
	return texts
}

func canonicalHeaders(h http.Header, order func(x, y string) int) string {
	lines := map[string]string{}
	var names []string
	for name, values := range h {
		key := strings.ToLower(name)
		if !strings.HasPrefix(key, "x-ms-") {
			continue
		}
		lines[key] = key + ":" + strings.TrimSpace(strings.Join(values, ",")) + "\n"
		names = append(names, key)
	}
	slices.SortFunc(names, order)
	var b strings.Builder
	for _, name := range names {
		b.WriteString(lines[name])
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
	names := make([]string, 0, len(values))
	for name := range values {
		names = append(names, name)
	}
	slices.Sort(names)
	var b strings.Builder
	b.WriteString("/" + account + path)
	for _, name := range names {
		slices.Sort(values[name])
		b.WriteString("\n" + name + ":" + strings.Join(values[name], ","))
	}
	return b.String()
}

// tableStrings returns the string that a request to the Table service has signed.
func tableStrings(account string, r *http.Request, scheme, date string) []string {
	resource := "/" + account + cmp.Or(r.URL.EscapedPath(), "/")
	if comp := parseQuery(r.URL.RawQuery).get("comp"); comp != "" {
		resource += "?comp=" + comp
	}
	if scheme == "SharedKeyLite" {
		return []string{date + "\n" + resource}
	}
	h := headers{r.Header}
	return []string{strings.Join([]string{r.Method, h.get("Content-MD5"), h.get("Content-Type"), date, resource}, "\n")}
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
