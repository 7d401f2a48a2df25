package pairs

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"net/url"
	"slices"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore"

	"github.com/azconc/azconc/optimistic/internal/optest"
	"github.com/azconc/azconc/pkg/aztest"
	"github.com/azconc/azconc/pkg/fence"
)

// setting is what a call is given. ready is called when the resource is there, and false means that the case does not exist.
type setting struct {
	name  string
	ready func(w *world, way *way, c *call) bool
}

// holder is a holder of the lock with a token. Its guard returns what a lost lease returns: the loss, and in the chain the reason for
// which the last renewal failed.
func holder(token fence.Token, lost error) *optest.Holder {
	return &optest.Holder{Token: token, Lost: lost}
}

var errLost = fmt.Errorf("box/lock: lease in doubt: not renewed for 15s of 15s: %w",
	errors.Join(errors.New("the lease is lost"), &url.Error{Op: "Put", URL: "http://127.0.0.1", Err: context.DeadlineExceeded}))

func names(w *world, way *way, c *call) bool {
	c.match, c.from = w.place.etag(w, way.facet), w.values[way.facet]
	return c.match != ""
}

var settingsOf = []setting{
	{"plain", func(*world, *way, *call) bool { return true }},
	{"id", func(_ *world, _ *way, c *call) bool { c.id = "op"; return true }},
	{"holder", func(_ *world, _ *way, c *call) bool { c.holder = holder(10, nil); return true }},
	{"id and holder", func(_ *world, _ *way, c *call) bool { c.id, c.holder = "op", holder(10, nil); return true }},
	{"etag", names},
	{"*", func(_ *world, _ *way, c *call) bool { c.match = azcore.ETagAny; return true }},
	{"id and etag", func(w *world, way *way, c *call) bool { c.id = "op"; return names(w, way, c) }},
	{"id and *", func(_ *world, _ *way, c *call) bool { c.id, c.match = "op", azcore.ETagAny; return true }},
	{"lease", func(w *world, _ *way, c *call) bool {
		w.lease = w.place.lock(w)
		c.lease = w.lease
		return true
	}},
	{"tags", func(_ *world, _ *way, c *call) bool { c.tags = `"state" = 'ready'`; return true }},
	{"dry run", func(_ *world, _ *way, c *call) bool { c.dry = true; return true }},
	{"create", func(_ *world, _ *way, c *call) bool { c.create = true; return true }},
	{"id and create", func(_ *world, _ *way, c *call) bool { c.id, c.create = "op", true; return true }},
	{"holder and create", func(_ *world, _ *way, c *call) bool { c.holder, c.create = holder(10, nil), true; return true }},
	{"no lineage", func(_ *world, _ *way, c *call) bool { c.bare = true; return true }},
	{"always", func(_ *world, _ *way, c *call) bool { c.always = true; return true }},
	{"lost", func(_ *world, _ *way, c *call) bool { c.holder = holder(10, errLost); return true }},
	{"broken", func(w *world, _ *way, _ *call) bool { w.place.broken(w); w.observe(nil); return true }},
}

// idle reports whether nothing is to be written.
func (s setting) idle() bool { return s.name == "lost" || s.name == "broken" }

// fault is what the network does: something once, to the first write, or an outage that begins with one of the requests. Or the caller
// gives up at one of them.
type fault struct {
	name    string
	kind    aztest.FaultKind
	delay   time.Duration
	count   int // defaults to 1
	outage  aztest.FaultKind
	givesUp bool         // once a request has been answered
	rare    aztest.Fault // of a kind that meets nothing but ways to write: see rarely
}

var faults = []fault{
	{name: "quiet"},
	{name: "answer lost", kind: aztest.LoseAnswer},
	{name: "request lost", kind: aztest.LoseRequest},
	{name: "doubled", kind: aztest.AnswerTwice, delay: 10 * time.Millisecond},
	{name: "again later", kind: aztest.RepeatLater, delay: time.Hour},
	{name: "later", kind: aztest.CommitAfterBreak, delay: time.Hour},
	{name: "hang", kind: aztest.Hang},
	{name: "busy", kind: aztest.Throttle, count: 10},
	{name: "outage of answers", outage: aztest.LoseAnswer},
	{name: "outage of requests", outage: aztest.Refuse},
	{name: "given up", givesUp: true},
	{name: "doubled and given up", kind: aztest.AnswerTwice, delay: 10 * time.Millisecond, givesUp: true},
}

// doubled reports whether the first write is delivered twice, and the answer to the second delivery is passed on.
func (f *fault) doubled() bool { return f.kind == aztest.AnswerTwice && f.rare.Kind == "" }

// rarely are the faults that every write is tested with, besides those above. Nothing happens beside them.
func rarely() (all []fault) {
	every := optest.Every(commits)
	for _, name := range slices.Sorted(maps.Keys(every)) {
		if f := every[name]; f.Delay <= time.Second && f.RetryAfter == 0 && !slices.ContainsFunc(faults, func(o fault) bool { return o.kind == f.Kind && f.Delay == 0 && f.Count == 1 && f.Status == 0 }) {
			all = append(all, fault{name: name, kind: f.Kind, rare: f})
		}
	}
	return all
}
