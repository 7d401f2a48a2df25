package azerr

import (
	"cmp"
	"encoding/xml"
	"net"
	"net/http"
	"net/url"
	"regexp"
	"strings"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore"
	"github.com/Azure/azure-sdk-for-go/sdk/azcore/runtime"
)

// refused is what explains the refusal of a request beside its code.
type refused struct {
	said             string // the body of the response
	plain            bool   // it was sent without TLS
	account, service string
	comp             string     // of the request's query
	role, permission string     // the least privileged built-in role that allows the request, and what a SAS needs
	authorization    string     // the header
	sas              url.Values // nil if it had none
	sent, at         time.Time  // by this machine's clock, and by the service's; zero if not known
}

// sdkClient matches the name of an SDK client, such as "azsdk-go-aztables/v1.4.1".
var sdkClient = regexp.MustCompile(`\bazsdk-go-az(blob|table|queue|file)s?/`)

func requestOf(e *azcore.ResponseError) *refused {
	r := &refused{account: "<account>"}
	if e.RawResponse == nil || e.RawResponse.Request == nil {
		return r
	}
	if e.RawResponse.Body != nil {
		payload.Lock()
		body, _ := runtime.Payload(e.RawResponse)
		payload.Unlock()
		r.said = string(body)
	}
	req := e.RawResponse.Request
	words := strings.Split(req.URL.Hostname(), ".")
	if len(words) > 1 && req.URL.Hostname() != "localhost" && net.ParseIP(req.URL.Hostname()) == nil {
		r.account, r.service = strings.TrimSuffix(words[0], "-secondary"), words[1]
	}
	if client := sdkClient.FindStringSubmatch(req.UserAgent()); client != nil { // the host of an emulator names no service
		r.service = client[1]
	}
	r.plain = req.URL.Scheme == "http"
	r.role, r.permission = roleFor(r.service, req), permission(r.service, req)
	r.authorization = req.Header.Get("Authorization")
	q := req.URL.Query()
	if r.comp = q.Get("comp"); q.Get("sig") != "" {
		r.sas = q
	}
	r.sent, _ = http.ParseTime(req.Header.Get("x-ms-date"))
	r.at, _ = http.ParseTime(e.RawResponse.Header.Get("Date"))
	return r
}

// said returns a condition on the body of the response.
func said(text string) func(*refused) bool {
	return func(r *refused) bool { return strings.Contains(r.said, text) }
}

func (r *refused) withoutTLS() bool { return r.plain && strings.Contains(r.said, "HTTPS") }
func (r *refused) signed() bool     { return r.sas != nil }
func (r *refused) policies() bool   { return r.signed() && r.comp == "acl" }
func (r *refused) tokened() bool    { return strings.HasPrefix(r.authorization, "Bearer ") }
func (r *refused) anonymous() bool {
	return r.service == "blob" && r.authorization == "" && r.sas == nil
}
func (r *refused) skewed() bool { return r.skew() > 10*time.Minute }

func (r *refused) skew() time.Duration {
	if r.sent.IsZero() || r.at.IsZero() {
		return 0
	}
	return r.sent.Sub(r.at).Abs()
}

func (r *refused) expired() bool {
	end := timeOfSAS(r.sas.Get("se"))
	return !end.IsZero() && !end.After(r.now())
}

func (r *refused) early() bool { return timeOfSAS(r.sas.Get("st")).After(r.now()) }

// now returns the time of the refusal, by the service's clock if it is known.
func (r *refused) now() time.Time {
	if r.at.IsZero() {
		return time.Now()
	}
	return r.at
}

// fact returns what a name in the table of explanations stands for.
func (r *refused) fact(name string) string {
	switch name {
	case "account":
		return r.account
	case "service":
		return r.service
	case "role":
		return r.role
	case "permission":
		return r.permission
	case "skew":
		return r.skew().String()
	case "detail":
		return r.detail()
	case "st", "se":
		return timeOfSAS(r.sas.Get(name)).UTC().Format(time.RFC3339)
	}
	return r.sas.Get(name)
}

// permission returns the permissions of a SAS that allow a request, as a text: any of those with "or" between them, all with "and".
func permission(service string, r *http.Request) string {
	q, message := r.URL.Query(), service == "queue" && strings.Contains(r.URL.Path, "/messages")
	switch comp, lists := q.Get("comp"), service == "table" && strings.HasSuffix(r.URL.Path, "/Tables"); {
	case comp == "tags":
		return "t"
	case strings.HasSuffix(r.URL.Path, "/$batch"):
		return "of one of its operations"
	case comp == "list", lists && r.Method == http.MethodGet:
		return "l"
	case message && (r.Method == http.MethodGet && !q.Has("peekonly") || r.Method == http.MethodDelete && !strings.HasSuffix(r.URL.Path, "/messages")):
		return "p"
	case r.Method == http.MethodGet, r.Method == http.MethodHead:
		return "r"
	case r.Method == http.MethodDelete:
		return "d"
	case message && r.Method == http.MethodPut, service == "table" && r.Header.Get("If-Match") != "":
		return "u"
	case r.Method == http.MethodPost && (message || service == "table" && !lists):
		return "a"
	case service == "table" && !lists:
		return "a and u"
	case comp == "appendblock":
		return "a or w"
	case comp == "", comp == "snapshot":
		return "c or w"
	}
	return "w"
}

// roleFor returns the least privileged built-in role that allows a request.
func roleFor(service string, r *http.Request) string {
	noun := "Storage " + cmp.Or(map[string]string{"table": "Table Data", "queue": "Queue Data", "file": "File Data Privileged"}[service], "Blob Data")
	switch needs, policies := permission(service, r), r.URL.Query().Get("comp") == "acl"; {
	case policies && service != "blob":
		return "Storage Account Contributor"
	case needs == "t", policies:
		return noun + " Owner"
	case service == "queue" && needs == "a":
		return noun + " Message Sender"
	case needs == "p":
		return noun + " Message Processor"
	case needs == "r", needs == "l":
		return noun + " Reader"
	}
	return noun + " Contributor"
}

// timeOfSAS parses a time in one of the formats of a SAS. It returns the zero time if it is in none.
func timeOfSAS(s string) time.Time {
	for _, layout := range []string{time.RFC3339, "2006-01-02T15:04Z", time.DateOnly} {
		if t, err := time.Parse(layout, s); err == nil {
			return t
		}
	}
	return time.Time{}
}

// detail returns the service's explanation, after a colon. For a signature that does not match it is the string to sign, which does
// not help a user, so it is omitted.
func (r *refused) detail() string {
	var answer struct{ AuthenticationErrorDetail string }
	err := xml.Unmarshal([]byte(r.said), &answer)
	text := answer.AuthenticationErrorDetail
	if err != nil || text == "" || strings.Contains(text, "Signature did not match") || strings.Contains(text, "The MAC signature") {
		return ""
	}
	return ": " + strings.TrimSuffix(oneLine(text), ".")
}
