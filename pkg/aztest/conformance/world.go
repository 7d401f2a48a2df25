package conformance

import (
	"cmp"
	"context"
	"net/http"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/storage/azblob/container"
)

// world is the container or share in which rules are asked, with what their responses have said.
type world struct {
	h         Harness
	box       box
	container *container.Client // nil in a share
	snapshots map[string]string // the last one of each blob
	versions  map[string][]string
}

// inContainer and inShare make a new one.
func inContainer(t T, h Harness) *world {
	c := h.Container(t)
	return &world{h: h, container: c, snapshots: map[string]string{}, versions: map[string][]string{},
		box: box{c.URL(), func(ctx context.Context) error { _, err := c.GetProperties(ctx, nil); return err }}}
}

func inShare(t T, h Harness) *world {
	s := h.Share(t)
	return &world{h: h, box: box{s.URL(), func(ctx context.Context) error { _, err := s.GetProperties(ctx, nil); return err }}}
}

// run asks the rules of a script, each part as a part of t.
func (w *world) run(t T, lines []string) {
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
				t.Run(name, func(t T) { w.run(t, rest[:end]) })
				w.run(t, rest[end:])
				return
			}
		}
		t.Run(name, func(t T) { w.run(t, rest) })
		return
	}
}

// ask carries out one line.
func (w *world) ask(t T, line string) {
	t.Helper()
	r, err := parseRule(line)
	if err != nil {
		t.Fatal(err)
	}
	got := w.do(t, r.step)
	switch {
	case r.asks:
		r.check(t, w.h, r.step, got)
	case got != success:
		t.Fatalf("%s: %s", r.step, got)
	}
}

// do carries out a step, and returns what came of it. Three are no requests of their own:
//
//	show NAME: request   returns a header of the response, its body, or the names in it
//	version RESOURCE     returns whether it has another ETag than when last asked
//	await expiry         waits until the lease of the container has expired
func (w *world) do(t T, step string) said {
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
		}
		return said(a.header.Get(what))
	case "version":
		return w.version(t, rest)
	case "await":
		w.awaitExpiry(t)
		return success
	}
	return w.send(t, step).said
}

func (w *world) send(t T, step string) answer {
	t.Helper()
	r, err := parseRequest(w.fill(t, expand(step)))
	if err != nil {
		t.Fatal(err)
	}
	a := w.box.send(t, r)
	if snapshot := a.header.Get("x-ms-snapshot"); snapshot != "" {
		w.snapshots[r.resource] = snapshot
	}
	return a
}

// version reports whether a blob has another ETag than when last asked, or one that it had before.
func (w *world) version(t T, resource string) said {
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

// head returns the properties of a blob, or for "." those of the container.
func (w *world) head(t T, resource string) http.Header {
	t.Helper()
	r := request{method: http.MethodHead, resource: resource, header: http.Header{}}
	if resource == "." {
		r.resource, r.query = "", "restype=container"
	}
	a := w.box.send(t, r)
	if a.said != success {
		t.Fatalf("the properties of %q: %s", resource, a.said)
	}
	return a.header
}

// awaitExpiry polls the container's lease: those of blobs were acquired before it.
func (w *world) awaitExpiry(t T) {
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

var nameElements = regexp.MustCompile(`<Name>[^<]*</Name>`)

var leaseIDs = map[string]string{
	"A": "11111111-1111-4111-8111-111111111111", "B": "22222222-2222-4222-8222-222222222222", "C": "33333333-3333-4333-8333-333333333333",
}

var blanks = regexp.MustCompile(`\{[^{}]*\}`)

// fill fills in what stands in braces: the lease id that a letter stands for, the ETag of a blob, its time, its last snapshot, a URL with
// which anybody can read it, and so many letters.
func (w *world) fill(t T, step string) string {
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
			return "Sat, 01 Jan 2000 00:00:00 GMT" // past
		default:
			n, err := strconv.Atoi(what)
			if err != nil {
				t.Fatalf("unknown: %s", blank)
			}
			return strings.Repeat(map[string]string{"zeros": "\x00", "letters": "x"}[of], n)
		}
	})
}
