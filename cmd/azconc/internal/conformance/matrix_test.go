package conformance

import (
	"fmt"
	"maps"
	"strings"
	"testing"
)

// condition is a column of a table: the headers that make it, and what has to be so before. x is the blob or the container.
type condition struct {
	name    string
	headers string
	leased  bool
	absent  bool
}

var conditions = []condition{
	{name: "If-Match: another", headers: ` | If-Match: "0x8D0000000000001"`},
	{name: "If-None-Match: the current", headers: " | If-None-Match: {etag x}"},
	{name: "If-None-Match: *", headers: " | If-None-Match: *"},
	{name: "If-Modified-Since: its time", headers: " | If-Modified-Since: {modified x}"},
	{name: "If-Unmodified-Since: long ago", headers: " | If-Unmodified-Since: {past}"},
	{name: "x-ms-if-tags: false", headers: ` | x-ms-if-tags: "state" = 'nothing'`},
	{name: "leased, no id", leased: true},
	{name: "leased, another id", headers: " | x-ms-lease-id: {lease B}", leased: true},
	{name: "leased, its id", headers: " | x-ms-lease-id: {lease A}", leased: true},
	{name: "not leased, an id", headers: " | x-ms-lease-id: {lease A}"},
	{name: "missing", absent: true},
	{name: "missing, If-Match", headers: ` | If-Match: "0x8D0000000000001"`, absent: true},
}

// operation is an operation of a table.
type operation struct {
	name, step string
	etag       bool   // its response has an ETag
	leased     bool   // it is about a lease that is held
	kind       string // the macro that makes its blob, "" for a block blob
	page       string // of the REST reference
	says       map[string]rule
}

// operations reads a table.
func operations(section string) (all []operation) {
	bases := map[string]map[string]rule{}
	for block := range strings.SplitSeq(strings.TrimSpace(strings.Join(read(section), "\n")), "\n\n") {
		lines := strings.Split(block, "\n")
		head, rest := strings.Split(lines[0], ", "), lines[1:]
		op := operation{says: map[string]rule{}}
		base, isBase := strings.CutPrefix(head[0], "base: ")
		if !isBase {
			op.name, op.step, rest = strings.TrimPrefix(head[0], "operation: "), rest[0], rest[1:]
			op.page, _, _ = strings.Cut(op.name, " (")
		}
		for i, word := range head[1:] {
			from := strings.TrimPrefix(word, "as ")
			page, isPage := strings.CutPrefix(word, "page ")
			switch {
			case i == 0:
				maps.Copy(op.says, bases[from])
			case isPage:
				op.page = page
			case word == "ETag":
				op.etag = true
			case word == "leased":
				op.leased = true
			default:
				op.kind = word
			}
		}
		for _, line := range rest {
			r, err := parseRule(line)
			if err != nil {
				panic(err) // the suite's own text
			}
			op.says[r.step] = r
		}
		if isBase {
			bases[base] = op.says
		} else {
			all = append(all, op)
		}
	}
	return all
}

// stage is where operations are asked.
type stage struct {
	h     harness
	box   *world // the container of all blobs; nil for operations on containers, each of which gets its own
	blobs int
}

func newStage(t *testing.T, h harness, section string) *stage {
	t.Helper()
	s := &stage{h: h}
	if section == "blob" {
		s.box = inContainer(t, h)
		s.box.ask(t, "put source source")
	}
	return s
}

// set prepares a blob or a container for an operation with a condition, and returns the request.
func (s *stage) set(t *testing.T, op operation, c condition) (w *world, step string) {
	t.Helper()
	w, x := s.box, "."
	acquire := "PUT ?restype=container&comp=lease | x-ms-lease-action: acquire | x-ms-proposed-lease-id: {lease A} | x-ms-lease-duration: 60"
	if w == nil {
		w = inContainer(t, s.h)
		if c.absent {
			w.ask(t, "DELETE ?restype=container")
		}
	} else {
		s.blobs++
		x = fmt.Sprintf("x-%d", s.blobs)
		acquire = "acquire " + x + " A 60"
		switch {
		case c.absent:
		case op.kind != "":
			w.ask(t, op.kind+" "+x)
		default:
			w.ask(t, "put "+x+" old")
			w.ask(t, "stage "+x+" -")
		}
	}
	if (c.leased || op.leased) && !c.absent {
		w.ask(t, acquire)
	}
	return w, named(op.step+c.headers, x)
}

// named puts the name of a blob for the x of a request.
func named(step, x string) string {
	call, headers, more := strings.Cut(step, " | ")
	words := strings.Fields(call)
	for i, word := range words {
		if rest, ok := strings.CutPrefix(word, "x"); ok && (rest == "" || rest[0] == '?') {
			words[i] = x + rest
		}
	}
	step = strings.Join(words, " ")
	if more {
		step += " | " + headers
	}
	return strings.NewReplacer("{etag x}", "{etag "+x+"}", "{modified x}", "{modified "+x+"}").Replace(step)
}

// matrix asks every operation of a table with every condition.
func matrix(t *testing.T, h harness, section string) {
	s := newStage(t, h, section)
	for _, op := range operations(section) {
		t.Run(op.name, func(t *testing.T) {
			w, step := s.set(t, op, condition{})
			a := w.send(t, step)
			expect{service: success}.check(t, h, "plain", a.said)
			expect{service: said(yes(op.etag))}.check(t, h, "its response has an ETag", said(yes(a.header.Get("ETag") != "")))
			for _, c := range conditions {
				r, ok := op.says[c.name]
				if !ok || r.service == "skip" {
					continue
				}
				w, step := s.set(t, op, c)
				r.check(t, h, c.name, w.do(t, step))
			}
		})
	}
}

func yes(b bool) string {
	if b {
		return "yes"
	}
	return "no"
}
