package explore

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"os"
	"regexp"
	"strings"
	"syscall"

	"github.com/azconc/azconc/pkg/aztest"
	"github.com/azconc/azconc/pkg/aztest/internal/storage"
)

// pending is a request at the gate.
type pending struct {
	client   *Client
	op       string
	shown    string // the resource as a diagram shows it
	label    string // the same in every run that follows the same choices, and unique in a run
	resource string // what it depends on and changes; see resourceOf
	reads    bool
	again    bool // it was applied once, and is to arrive a second time; guarded by World.mu
	request  *http.Request
	body     []byte
	answer   chan response // has room for one
}

type response struct {
	response *http.Response
	err      error
}

var (
	errBroken = &net.OpError{Op: "read", Net: "tcp", Err: os.NewSyscallError("read", syscall.ECONNRESET)}
	errOver   = errors.New("the schedule is over")
)

// Do implements policy.Transporter.
func (c *Client) Do(r *http.Request) (*http.Response, error) {
	p, err := c.arrive(r)
	if err != nil {
		return nil, &url.Error{Op: r.Method, URL: r.URL.String(), Err: err}
	}
	var got response
	select {
	case got = <-p.answer:
	case <-c.World.over:
		got.err = errOver
	case <-r.Context().Done():
		c.World.withdraw(p)
		got.err = r.Context().Err()
	}
	if got.err != nil {
		return nil, &url.Error{Op: r.Method, URL: r.URL.String(), Err: got.err}
	}
	return got.response, nil
}

func (c *Client) arrive(r *http.Request) (*pending, error) {
	body, err := storage.BodyOf(r)
	if err != nil {
		return nil, err
	}
	p := &pending{client: c, request: r, body: body, answer: make(chan response, 1)}
	if r.Header.Get("Authorization") == "" { // to sign each request would take a seventh of the time of a schedule
		r.Header.Set("Authorization", "SharedKey "+aztest.Account+":unsigned")
	}
	described := aztest.Describe(r)
	p.op, p.reads = described.Op, !aztest.Writes(&described)
	w := c.World
	w.mu.Lock()
	defer w.mu.Unlock()
	if c.killed {
		return nil, errOver
	}
	described.Resource = c.named(described.Resource)
	p.shown, p.resource = described.Resource, resourceOf(described, p.body)
	p.label = fmt.Sprintf("%d %s %s", c.Number, p.op, p.shown)
	c.sent[p.label]++
	p.label += fmt.Sprintf(" #%d", c.sent[p.label])
	w.pending = append(w.pending, p)
	w.signal()
	return p, nil
}

// uuid matches ids that clients draw, and those that the in-memory service counts, which all have counted in the middle.
var uuid = regexp.MustCompile(`[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}|\b[0-9a-f]{12}\b`)

const counted = "-0000-4000-8000-"

// named replaces the ids in the name of a resource that differ from run to run by the client that used them first, and
// how many it had used before. The caller holds World.mu.
func (c *Client) named(resource string) string {
	if len(resource) < 12 {
		return resource
	}
	return uuid.ReplaceAllStringFunc(resource, func(id string) string {
		if strings.Contains(id, counted) {
			return id
		}
		if c.World.names[id] == "" {
			c.World.names[id] = fmt.Sprintf("id%d-%d", c.Number, c.ids)
			c.ids++
		}
		return c.World.names[id]
	})
}

// everything is the resource of a request that more than one resource may depend on.
const everything = "*"

// resourceOf names the smallest thing that a request depends on and changes, as far as that is known: a blob, a file, a
// table or a queue.
func resourceOf(r aztest.Request, body []byte) string {
	first, rest, _ := strings.Cut(r.Resource, "/")
	switch {
	case r.Op == "Entity Group Transaction":
		_, after, _ := bytes.Cut(body, []byte("/"+aztest.Account+"/"))
		if i := bytes.IndexAny(after, "(? \r\n"); i > 0 {
			return "table " + string(after[:i])
		}
		return everything
	case strings.Contains(r.Op, "Entity"), strings.Contains(r.Op, "Entities"):
		return "table " + first
	case r.Query.Get("restype") == "container", r.Query.Get("restype") == "share", r.Query.Get("comp") == "list", first == "", strings.Contains(r.Op, "Table"):
		return everything
	case rest == "":
		return everything
	case rest == "messages" || strings.HasPrefix(rest, "messages/"):
		return "queue " + first
	}
	return r.Resource
}

// withdraw takes a request away whose sender no longer waits. It was never sent.
func (w *World) withdraw(p *pending) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.remove(p)
}

// apply sends the request to the service, and reports whether it changed anything there.
func (p *pending) apply() (got response, changed bool) {
	r := p.request.Clone(context.WithoutCancel(p.request.Context()))
	r.Body = storage.NewPayload(p.body)
	resp, err := p.client.World.Service.Do(r) //nolint:bodyclose // the client closes it; one that is dropped holds nothing
	if err != nil || p.reads || resp.StatusCode >= 300 {
		return response{resp, err}, false
	}
	changed = true
	if p.op == "Get Messages" || p.op == "Entity Group Transaction" {
		body, err := io.ReadAll(resp.Body)
		if err != nil {
			return response{nil, err}, true
		}
		resp.Body = io.NopCloser(bytes.NewReader(body))
		if p.op == "Get Messages" {
			changed = bytes.Contains(body, []byte("<QueueMessage>"))
		} else {
			changed = !bytes.Contains(body, []byte("HTTP/1.1 4"))
		}
	}
	return response{resp, nil}, changed
}
