package conformance

import (
	"cmp"
	"context"
	"fmt"
	"net/http"
	"net/url"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/data/aztables"
	"github.com/Azure/azure-sdk-for-go/sdk/storage/azblob/container"
)

// world is the container, the queue, the share or the tables in which rules are asked, with what their responses have said.
type world struct {
	h         harness
	carry     func(context.Context) error // sends a request of a client, in whose place that of a rule goes
	container *container.Client           // of a container
	table     string                      // of tables, as entities is
	entities  *aztables.Client
	ids       []string            // of messages, as responses have named them
	receipts  []string            // their pop receipts
	snapshots map[string]string   // the last one of each blob
	versions  map[string][]string // ETags, the last one last
}

// inContainer, inQueue and inShare make a new one.
func inContainer(t *testing.T, h harness) *world {
	c := h.Container(t)
	return &world{h: h, container: c, snapshots: map[string]string{}, versions: map[string][]string{},
		carry: func(ctx context.Context) error { _, err := c.GetProperties(ctx, nil); return err }}
}

func inQueue(t *testing.T, h harness) *world {
	q := h.Queue(t)
	return &world{h: h, carry: func(ctx context.Context) error { _, err := q.GetProperties(ctx, nil); return err }}
}

func inShare(t *testing.T, h harness) *world {
	s := h.Share(t)
	return &world{h: h, carry: func(ctx context.Context) error { _, err := s.GetProperties(ctx, nil); return err }}
}

// run asks the rules of a script, each part as a part of t.
func (w *world) run(t *testing.T, lines []string) {
	for i, line := range lines {
		name, ok := strings.CutPrefix(line, "# ")
		if !ok {
			if line != "" {
				w.ask(t, line)
			}
			continue
		}
		rest := lines[i+1:]
		for end, next := range rest {
			if strings.HasPrefix(next, "# ") {
				t.Run(name, func(t *testing.T) { w.run(t, rest[:end]) })
				w.run(t, rest[end:])
				return
			}
		}
		t.Run(name, func(t *testing.T) { w.run(t, rest) })
		return
	}
}

// ask carries out one line.
func (w *world) ask(t *testing.T, line string) {
	t.Helper()
	r, err := parseRule(line)
	if err != nil {
		t.Fatal(err)
	}
	if w.h.Emulator && r.emulator == "skip" {
		return
	}
	got := w.do(t, r.step)
	switch {
	case r.asks:
		r.check(t, w.h, r.step, got)
	case got != success:
		t.Fatalf("%s: %s", r.step, got)
	}
}

// do carries out a step, and returns what came of it. These are no requests of their own:
//
//	show NAME: request   returns a header of the response, its body, the names or rows in it, or for "json NAME" a member
//	batch …              sends a transaction, see batch
//	version RESOURCE     returns whether it has another ETag than when last asked
//	await expiry         waits until the lease of the container has expired
func (w *world) do(t *testing.T, step string) said {
	t.Helper()
	verb, rest, _ := strings.Cut(step, " ")
	switch verb {
	case "show":
		what, request, _ := strings.Cut(rest, ": ")
		a := w.send(t, request)
		switch {
		case a.said != success:
			return a.said
		case what == "body":
			return said(a.body)
		case what == "names":
			return said(cmp.Or(strings.Join(nameElements.FindAllString(a.body, -1), " "), "none"))
		case what == "rows":
			return rows(a.body)
		case strings.HasPrefix(what, "json "):
			return member(a.body, strings.TrimPrefix(what, "json "))
		}
		return said(a.header.Get(what))
	case "version":
		return w.version(t, rest)
	case "batch":
		return w.batch(t, rest)
	case "await":
		w.awaitExpiry(t)
		return success
	}
	return w.send(t, step).said
}

func (w *world) send(t *testing.T, step string) answer {
	t.Helper()
	r, err := parseRequest(w.fill(t, expand(step)))
	if err != nil {
		t.Fatal(err)
	}
	a := w.carried(t, r)
	if snapshot := a.header.Get("x-ms-snapshot"); snapshot != "" {
		w.snapshots[r.resource] = snapshot
	}
	for _, m := range idElements.FindAllStringSubmatch(a.body, -1) {
		w.ids = append(w.ids, m[1])
	}
	for _, m := range receiptElements.FindAllStringSubmatch(a.body, -1) {
		w.receipts = append(w.receipts, m[1])
	}
	if receipt := a.header.Get("x-ms-popreceipt"); receipt != "" {
		w.receipts = append(w.receipts, receipt)
	}
	return a
}

// version reports whether a blob has another ETag than when last asked, or one that it had before.
func (w *world) version(t *testing.T, resource string) said {
	t.Helper()
	etag, before := w.head(t, resource).Get("ETag"), w.versions[resource]
	if len(before) > 0 && before[len(before)-1] == etag {
		return "the same"
	}
	w.versions[resource] = append(before, etag)
	if slices.Contains(before, etag) {
		return "one that it had before"
	}
	return "another"
}

// head returns the headers of a blob or an entity, or for "." those of the container.
func (w *world) head(t *testing.T, resource string) http.Header {
	t.Helper()
	r := request{method: http.MethodHead, resource: resource, header: http.Header{}}
	if resource == "." {
		r.resource, r.query = "", "restype=container"
	} else if w.table != "" {
		r.method, r.resource = http.MethodGet, w.path(resource)
	}
	a := w.carried(t, r)
	if a.said != success {
		t.Fatalf("the properties of %q: %s", resource, a.said)
	}
	return a.header
}

// awaitExpiry polls the container's lease: those of blobs were acquired before it.
func (w *world) awaitExpiry(t *testing.T) {
	t.Helper()
	tick := time.NewTicker(250 * time.Millisecond)
	defer tick.Stop()
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
	defer cancel()
	for w.head(t, ".").Get("x-ms-lease-state") != "expired" {
		select {
		case <-tick.C:
		case <-ctx.Done():
			t.Fatal("the leases did not expire in time")
		}
	}
}

var (
	nameElements    = regexp.MustCompile(`<Name>[^<]*</Name>`)
	idElements      = regexp.MustCompile(`<MessageId>([^<]*)</MessageId>`)
	receiptElements = regexp.MustCompile(`<PopReceipt>([^<]*)</PopReceipt>`)
)

var leaseIDs = map[string]string{
	"A": "11111111-1111-4111-8111-111111111111", "B": "22222222-2222-4222-8222-222222222222", "C": "33333333-3333-4333-8333-333333333333",
}

var blanks = regexp.MustCompile(`\{\w[^{}]*\}`) // not JSON

// fill fills in what stands in braces: the table, the lease id that a letter stands for, the ETag of a blob or an entity, the first or
// the last one that "version" has seen, its time, its last snapshot, a URL with which anybody can read it, the n-th message id or pop
// receipt that a response had, and so many letters or properties.
func (w *world) fill(t *testing.T, step string) string {
	t.Helper()
	return blanks.ReplaceAllStringFunc(step, func(blank string) string {
		words := strings.Fields(strings.Trim(blank, "{}"))
		of := words[len(words)-1]
		switch what := strings.Join(words[:len(words)-1], " "); what {
		case "lease":
			if id := leaseIDs[of]; id != "" {
				return id
			}
			return of
		case "etag":
			return w.head(t, of).Get("ETag")
		case "first etag":
			return w.versions[of][0]
		case "last etag":
			return w.versions[of][len(w.versions[of])-1]
		case "id", "receipt":
			n, err := strconv.Atoi(of)
			all := map[string][]string{"id": w.ids, "receipt": w.receipts}[what]
			if err != nil || n > len(all) {
				t.Fatalf("there is no %s", blank)
			}
			return url.QueryEscape(all[n-1])
		case "bare etag":
			return strings.Trim(w.head(t, of).Get("ETag"), `"`)
		case "modified":
			return w.head(t, of).Get("Last-Modified")
		case "snapshot":
			return w.snapshots[of]
		case "url":
			return w.h.sign(t, w.container.NewBlockBlobClient(of))
		case "unsigned url":
			return w.container.NewBlobClient(of).URL()
		case "":
			return map[string]string{"past": "Sat, 01 Jan 2000 00:00:00 GMT", "table": w.table, "TABLE": strings.ToUpper(w.table)}[of]
		default:
			n, err := strconv.Atoi(what)
			if err != nil {
				t.Fatalf("unknown: %s", blank)
			}
			return repeat(of, n)
		}
	})
}

// repeat returns so many letters, properties of a JSON object, or operations of a transaction.
func repeat(what string, n int) string {
	var all []string
	for i := range n {
		switch what {
		case "zeros":
			all = append(all, "\x00")
		case "letters":
			all = append(all, "x")
		case "properties":
			all = append(all, fmt.Sprintf(`,"p%03d":1`, i))
		case "texts":
			all = append(all, fmt.Sprintf(`,"p%03d":"%s"`, i, strings.Repeat("x", 32<<10)))
		case "merges":
			all = append(all, fmt.Sprintf("merge many/r%03d", i))
		}
	}
	if what == "merges" {
		return strings.Join(all, " | ")
	}
	return strings.Join(all, "")
}
