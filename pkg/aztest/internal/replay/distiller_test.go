package replay

import (
	"crypto/md5"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"
)

// recorded is a line of a recording.
type recorded struct {
	File      string            `json:"file"`
	Method    string            `json:"method"`
	Path      string            `json:"path"`
	Query     string            `json:"query"`
	Request   map[string]string `json:"request"`
	Body      *recordedBody     `json:"requestBody"`
	Status    int               `json:"status"`
	Code      string            `json:"code"`
	Response  map[string]string `json:"response"`
	Said      *recordedBody     `json:"responseBody"`
	Secondary json.RawMessage   `json:"secondary"`
}

type recordedBody struct {
	Text   *string `json:"text"`
	Base64 []byte  `json:"base64"`
	Length *int    `json:"length"`
}

func (b *recordedBody) bytes() []byte {
	switch {
	case b == nil:
		return nil
	case b.Text != nil:
		return []byte(*b.Text)
	}
	return b.Base64
}

func (b *recordedBody) size() int {
	if b != nil && b.Length != nil {
		return *b.Length
	}
	return len(b.bytes())
}

// Distil reads a compressed recording, one request a line, and returns its facts.
func Distil(r io.Reader, service string) ([]Scenario, error) {
	var all []Scenario
	err := eachLine(r, func(line []byte) error {
		var one recorded
		if err := json.Unmarshal(line, &one); err != nil {
			return err
		}
		date, err := http.ParseTime(one.Response["date"])
		if err != nil {
			return fmt.Errorf("%s: %w", one.File, err)
		}
		if len(all) == 0 || all[len(all)-1].Name != one.File {
			all = append(all, Scenario{Service: service, Name: one.File, Began: date, Version: one.Request["x-ms-version"]})
		}
		s := &all[len(all)-1]
		s.Steps = append(s.Steps, one.step(s, date))
		return nil
	})
	return all, err
}

// dropped are request headers that a replay sets itself, or that are secret.
var dropped = []string{"x-ms-date", "x-ms-version", "x-ms-client-request-id", "user-agent", "authorization", "content-length",
	"x-ms-encryption-key", "x-ms-encryption-key-sha256", "maxdataserviceversion"}

// kept are response headers whose value is compared or mapped, in addition to x-ms-meta-.
var kept = []string{"etag", "last-modified", "content-length", "content-range", "x-ms-lease-id", "x-ms-lease-state", "x-ms-lease-status",
	"x-ms-lease-duration", "x-ms-lease-time", "x-ms-snapshot", "x-ms-copy-id", "x-ms-copy-status", "x-ms-copy-progress", "x-ms-popreceipt",
	"x-ms-blob-type", "x-ms-blob-sequence-number", "x-ms-blob-append-offset", "x-ms-blob-committed-block-count", "x-ms-blob-content-length",
	"x-ms-access-tier", "x-ms-access-tier-inferred", "x-ms-blob-public-access", "x-ms-approximate-messages-count", "x-ms-share-quota",
	"x-ms-type", "x-ms-content-length", "x-ms-continuation-nextpartitionkey", "x-ms-continuation-nextrowkey",
	"x-ms-continuation-nexttablename", "x-ms-number-of-handles-closed", "x-ms-file-permission-key", "x-ms-tag-count", "preference-applied"}

// silent are response headers that do not depend on the service's state.
var silent = []string{"date", "server", "x-ms-version", "x-ms-request-id", "x-ms-client-request-id", "x-ms-error-code", "transfer-encoding",
	"vary", "cache-control", "x-content-type-options", "content-type"}

func (one *recorded) step(s *Scenario, date time.Time) Step {
	step := Step{
		At: max(0, int(date.Sub(s.Began).Seconds())), Method: one.Method, Path: one.Path, Query: one.Query,
		Anonymous: one.Request["x-ms-date"] == "", Secondary: len(one.Secondary) > 0, Header: map[string]string{},
	}
	if v := one.Request["x-ms-version"]; v != s.Version {
		step.Version = v
	}
	for name, value := range one.Request {
		if slices.Contains(dropped, name) {
			continue
		}
		if strings.HasSuffix(name, "content-md5") {
			value = one.sum(name, value)
		}
		switch {
		case name == "x-ms-copy-source":
			value = withoutQuery(value)
		case len(value) > 120 && name != "x-ms-tags":
			value = abbreviated(len(value))
		}
		step.Header[name] = value
	}
	step.Body, step.Length = one.body(s.Service)
	step.Answer = one.answer()
	return step
}

// withoutQuery keeps only the snapshot in a URL's query, and the fact that it was signed.
func withoutQuery(raw string) string {
	path, query, _ := strings.Cut(raw, "?")
	values, err := url.ParseQuery(query)
	if err != nil || query == "" {
		return path
	}
	left := url.Values{}
	for _, name := range []string{"snapshot", "sharesnapshot"} {
		if values.Has(name) {
			left.Set(name, values.Get(name))
		}
	}
	if values.Has("se") || values.Has("sv") {
		left.Set("signed", "1")
	}
	return strings.TrimSuffix(path+"?"+left.Encode(), "?")
}

// The sums of bodies, which a replay fills in.
const (
	RightSum  = "{right}" // of the body, or of the source
	WrongSum  = "{wrong}" // of something else
	sumHeader = "content-md5"
)

func (one *recorded) sum(name, value string) string {
	body := one.Body.bytes()
	if hash := md5.Sum(body); name == sumHeader && len(body) > 0 {
		if value == base64.StdEncoding.EncodeToString(hash[:]) {
			return RightSum
		}
		return WrongSum
	}
	if one.Code == "Md5Mismatch" {
		return WrongSum
	}
	return RightSum
}

// body keeps the part that the service interprets. Content is reduced to its length.
func (one *recorded) body(service string) (text string, length int) {
	length = one.Body.size()
	interpreted := service == "queue" || service == "table" || strings.Contains(one.Query, "comp=blocklist") ||
		strings.Contains(one.Query, "comp=acl") || strings.Contains(one.Query, "comp=properties") || strings.Contains(one.Query, "comp=tags")
	if !interpreted || one.Body == nil || one.Body.Text == nil {
		return "", length
	}
	if strings.Contains(one.Query, "comp=blocklist") { // its ids are those of the queries before
		return *one.Body.Text, 0
	}
	return Abbreviate(*one.Body.Text), 0
}

var (
	long     = regexp.MustCompile(`[A-Za-z0-9+/=_-]{65,}`)
	filler   = regexp.MustCompile(`\{x\*(\d+)\}`)
	boundary = regexp.MustCompile(`batch_|changeset_`)
)

func abbreviated(n int) string { return fmt.Sprintf("{x*%d}", n) }

// Abbreviate replaces long words of a text, which are encrypted or random, by their length. Boundaries of multipart
// texts are kept.
func Abbreviate(text string) string {
	return long.ReplaceAllStringFunc(text, func(word string) string {
		if boundary.MatchString(word) {
			return word
		}
		return abbreviated(len(word))
	})
}

// Expand puts words of the right length where Abbreviate removed them.
func Expand(text string) string {
	return filler.ReplaceAllStringFunc(text, func(word string) string {
		n, _ := strconv.Atoi(filler.FindStringSubmatch(word)[1])
		return strings.Repeat("x", n)
	})
}

// described reports whether the service itself writes a body, so that its length does not matter.
func described(contentType string) bool {
	return strings.HasPrefix(contentType, "application/xml") || strings.HasPrefix(contentType, "application/json")
}

func (one *recorded) answer() Answer {
	a := Answer{Status: one.Status, Code: one.Code, Header: map[string]string{}}
	for name, value := range one.Response {
		switch {
		case slices.Contains(silent, name):
		case name == "content-length" && one.Status >= 300: // of the error's text
		case slices.Contains(kept, name), strings.HasPrefix(name, "x-ms-meta-") && len(value) <= 120:
			a.Header[name] = value
		default:
			a.Header[name] = ""
		}
	}
	if one.Status < 300 {
		a.Shape = Shape(one.Response["content-type"], one.Said.bytes())
		for i := range a.Shape {
			if !strings.HasPrefix(a.Shape[i], "NextMarker=") { // a later query has it in full
				a.Shape[i] = Abbreviate(a.Shape[i])
			}
		}
		if len(a.Shape) == 0 && !described(one.Response["content-type"]) {
			a.Length = one.Said.size()
		}
	}
	return a
}
