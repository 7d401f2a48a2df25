package replay

import (
	"bytes"
	"cmp"
	"crypto/md5"
	"encoding/base64"
	"io"
	"maps"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/azconc/azconc/pkg/aztest/internal/auth"
)

// server is the service that a scenario is replayed against.
type server struct {
	url   map[string]string // of each service, with the account
	send  func(*http.Request) (*http.Response, error)
	shift time.Duration   // from recorded time to the server's time
	whole bool            // whole responses are compared, and the server's clock runs as the recorded one did; otherwise see statesOnly
	sign  string          // what is added to the query of the URL of a source, and of a request with a credential; "" where no signature is verified
	key   *auth.Authority // signs a request with a credential in place of that
}

// answered is a replayed response.
type answered struct {
	Answer
	body []byte
	date time.Time
}

// player replays one scenario. It records the values that the service chose, and the resource at each path.
type player struct {
	server
	scenario Scenario
	step     int
	ours     map[string]string // from the recorded service's values to this one's
	theirs   map[string]string // the reverse
	born     map[string]int    // the step that first showed the recorded service's value
	before   map[string]bool   // paths of resources that existed before the first step
	made     map[string]bool   // paths of resources that were created
	contents map[string][]byte // by path, for the sums of sources
}

func newPlayer(s server, scenario Scenario) *player {
	return &player{server: s, scenario: scenario, ours: map[string]string{}, theirs: map[string]string{}, born: map[string]int{},
		made: map[string]bool{}, before: map[string]bool{}, contents: map[string][]byte{}}
}

// play sends the next request, and returns the differences between the response and the recorded one.
func (p *player) play() []string {
	step := p.scenario.Steps[p.step]
	p.prepare(step)
	request, err := p.request(step)
	if err != nil {
		return []string{err.Error()}
	}
	got, err := p.exchange(request)
	p.step++
	if err != nil {
		return []string{err.Error()}
	}
	if step.Answer.Status < 300 {
		p.note(step)
	}
	return p.compare(step, got)
}

func (p *player) exchange(r *http.Request) (answered, error) {
	if p.key != nil && r.Header.Get("Authorization") != "" {
		p.key.Sign(r, p.scenario.Service)
	}
	response, err := p.send(r)
	if err != nil {
		return answered{}, err
	}
	defer response.Body.Close()
	body, err := io.ReadAll(response.Body)
	if err != nil {
		return answered{}, err
	}
	a := answered{body: body, Answer: Answer{Status: response.StatusCode, Header: map[string]string{}}}
	for name, values := range response.Header {
		a.Header[strings.ToLower(name)] = values[0]
	}
	a.date, _ = http.ParseTime(response.Header.Get("Date"))
	if a.Code = response.Header.Get("x-ms-error-code"); a.Code == "" && (a.Status >= 300 || a.Status == http.StatusAccepted) {
		a.Code = CodeIn(body)
	}
	if a.Status < 300 {
		if a.Shape = Shape(response.Header.Get("Content-Type"), body); len(a.Shape) == 0 && !described(response.Header.Get("Content-Type")) {
			a.Length = len(body)
		}
		for _, line := range a.Shape { // of a transaction
			if code, ok := strings.CutPrefix(line, "code="); ok {
				a.Code = code
			}
		}
	}
	return a, nil
}

// request returns the request of a step, with this service's values in place of the recorded service's.
func (p *player) request(step Step) (*http.Request, error) {
	segments := strings.Split(step.Path, "/")
	for i, one := range segments {
		segments[i] = p.mapped(unescaped(p.scenario, one))
	}
	query := url.Values{}
	for pair := range strings.SplitSeq(step.Query, "&") {
		name, value, _ := strings.Cut(pair, "=")
		name, err := url.QueryUnescape(name)
		if err != nil {
			return nil, err
		}
		if value, err = url.QueryUnescape(value); err != nil {
			return nil, err
		}
		if name != "" {
			query.Add(name, p.mapped(value))
		}
	}
	body := p.body(step)
	r, err := http.NewRequest(step.Method, p.url[p.scenario.Service], bytes.NewReader(body))
	if err != nil {
		return nil, err
	}
	r.URL.Path += strings.Join(segments, "/")
	r.URL.RawQuery = query.Encode()
	r.Header.Set("x-ms-version", cmp.Or(step.Version, p.scenario.Version))
	r.Header.Set("x-ms-date", time.Now().UTC().Format(http.TimeFormat))
	if !step.Anonymous {
		p.authorize(r)
	}
	for name, value := range step.Header {
		switch {
		case value == RightSum:
			value = p.sum(step, body)
		case value == WrongSum:
			value = sum([]byte("something else"))
		case strings.HasSuffix(name, "modified-since"):
			value = p.shifted(value)
		case name == "x-ms-copy-source":
			value = p.source(value)
		default:
			value = p.mapped(Expand(value))
		}
		r.Header.Set(name, value)
	}
	p.remember(step, body)
	return r, nil
}

// unescaped returns a segment of a recorded path as it was meant. Those of net2019 were escaped twice.
func unescaped(s Scenario, segment string) string {
	plain, err := url.PathUnescape(segment)
	if err != nil {
		return segment
	}
	if again, err := url.PathUnescape(plain); err == nil && strings.HasPrefix(s.Name, "net2019/") {
		return again
	}
	return plain
}

// authorize adds a credential: a signature in the query if the server verifies one, and otherwise any header, which exchange replaces
// if there is a key.
func (p *player) authorize(r *http.Request) {
	if p.sign != "" && p.key == nil {
		r.URL.RawQuery = strings.TrimPrefix(r.URL.RawQuery+"&"+p.sign, "&")
		return
	}
	r.Header.Set("Authorization", "SharedKey replay")
}

// shifted moves a date by the difference between the clocks.
func (p *player) shifted(date string) string {
	at, err := http.ParseTime(date)
	if err != nil {
		return date
	}
	return at.Add(p.shift).UTC().Format(http.TimeFormat)
}

func (p *player) mapped(recorded string) string {
	if value, ok := p.ours[recorded]; ok {
		return value
	}
	if one := bare(recorded); one != recorded && p.ours[one] != "" {
		return `"` + p.ours[one] + `"`
	}
	return recorded
}

// body returns the body of a step: text with this service's values in it, or content that depends only on the length.
func (p *player) body(step Step) []byte {
	if step.Body == "" {
		return content(step.Length)
	}
	text := Expand(step.Body)
	if step.Path != "/$batch" {
		return []byte(text)
	}
	for _, recorded := range slices.SortedFunc(maps.Keys(p.ours), func(a, b string) int { return len(b) - len(a) }) {
		text = strings.ReplaceAll(text, recorded, p.ours[recorded])
	}
	// A transaction's requests contain the whole URL, and its lines end as HTTP's do.
	text = strings.ReplaceAll(text, " https://account.table.example/", " /")
	for _, method := range []string{"POST", "PUT", "MERGE", "PATCH", "DELETE", "GET"} {
		text = strings.ReplaceAll(text, "\n"+method+" /", "\n"+method+" "+p.url["table"]+"/")
	}
	return []byte(strings.ReplaceAll(strings.ReplaceAll(text, "\r\n", "\n"), "\n", "\r\n"))
}

func content(n int) []byte {
	if n == 0 {
		return nil
	}
	out := make([]byte, n)
	for i := range out {
		out[i] = byte(i*7 + n)
	}
	return out
}

func sum(data []byte) string {
	hash := md5.Sum(data)
	return base64.StdEncoding.EncodeToString(hash[:])
}

// sum returns the sum of the body, or of the copied part of the source.
func (p *player) sum(step Step, body []byte) string {
	from := step.Header["x-ms-copy-source"]
	if from == "" {
		return sum(body)
	}
	body = p.contents[sourcePath(from)]
	if first, last, ok := rangeIn(step.Header["x-ms-source-range"]); ok && last < len(body) {
		body = body[first : last+1]
	}
	return sum(body)
}

func (p *player) remember(step Step, body []byte) {
	if step.Method != http.MethodPut || step.Header["x-ms-copy-source"] != "" || step.Answer.Status >= 300 {
		return
	}
	switch comp := compOf(step); {
	case step.Query == "":
		p.contents[step.Path] = body
		if n, err := strconv.Atoi(step.Header["x-ms-blob-content-length"]); err == nil && n < 1<<24 {
			p.contents[step.Path] = make([]byte, n)
		}
	case comp == "appendblock":
		p.contents[step.Path] = append(slices.Clone(p.contents[step.Path]), body...)
	case comp == "page":
		if first, last, ok := rangeIn(cmp.Or(step.Header["x-ms-range"], step.Header["range"])); ok && last < len(p.contents[step.Path]) {
			copy(p.contents[step.Path][first:last+1], body)
		}
	}
}

func sourcePath(source string) string {
	u, err := url.Parse(source)
	if err != nil {
		return ""
	}
	return u.Path
}

// source replaces the URL of a source by one of this server.
func (p *player) source(recorded string) string {
	u, err := url.Parse(recorded)
	if err != nil {
		return recorded
	}
	service, _, _ := strings.Cut(strings.TrimPrefix(u.Host, "account."), ".")
	query := u.Query()
	if query.Has("signed") {
		query.Del("signed")
		query.Set("sig", "replayed")
	}
	if p.sign != "" {
		more, _ := url.ParseQuery(p.sign)
		maps.Copy(query, more)
	}
	if at := query.Get("snapshot"); at != "" {
		query.Set("snapshot", p.mapped(at))
	}
	return strings.TrimSuffix(p.url[service]+u.EscapedPath()+"?"+query.Encode(), "?")
}

// rangeIn parses "bytes=first-last" or "bytes first-last/total".
func rangeIn(header string) (first, last int, ok bool) {
	header = strings.TrimPrefix(strings.TrimPrefix(header, "bytes="), "bytes ")
	header, _, _ = strings.Cut(header, "/")
	from, to, _ := strings.Cut(header, "-")
	first, err := strconv.Atoi(from)
	if err != nil {
		return 0, 0, false
	}
	last, err = strconv.Atoi(to)
	return first, last, err == nil
}
