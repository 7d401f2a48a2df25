package pairs

import (
	"context"
	"fmt"
	"maps"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore/policy"
	"github.com/Azure/azure-sdk-for-go/sdk/data/aztables"
	"github.com/Azure/azure-sdk-for-go/sdk/storage/azblob/container"
	"github.com/Azure/azure-sdk-for-go/sdk/storage/azqueue/v2"

	"github.com/azconc/azconc/optimistic"
	"github.com/azconc/azconc/pkg/aztest"
	"github.com/azconc/azconc/pkg/aztest/bubble"
	"github.com/azconc/azconc/pkg/aztest/outages"
	"github.com/azconc/azconc/pkg/retry"
)

// world is one case in progress: a resource in a service of its own, and what happened to it.
type world struct {
	t       *testing.T
	s       *aztest.Service
	place   *place
	name    string // of the resource: the pace of writers is shared in the process, by name
	lease   string // the id of the lease on the resource; empty if there is none
	values  map[string]string
	history []entry

	mu sync.Mutex // guards values and history while requests are sent in parallel
}

// entry is one moment of a history: a value that was stored, the end of a call, or the loss of what the resource remembered.
type entry struct {
	values map[string]string // by facet, once a request has changed one
	by     *told             // whose request that was; nil for a writer outside azconc
	told   *told             // a call has ended
	forgot bool              // a writer outside azconc has removed what the resource remembers
}

// told is a call, and what it said at its end.
type told struct {
	call
	way   *way
	p     *port
	began int // its place in the history
	res   optimistic.Result
	err   error
}

func (w *world) ctx() context.Context {
	return retry.WithRandom(context.Background(), func() float64 { return 0.5 })
}

// check ends the case if what the test itself does has failed.
func (w *world) check(err error) {
	if err != nil {
		w.t.Fatalf("the test's own request: %v", err)
	}
}

// observe notes what is stored, if that has changed.
func (w *world) observe(by *told) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if now := w.place.read(w); !maps.Equal(now, w.values) {
		w.values = now
		w.history = append(w.history, entry{values: now, by: by})
	}
}

// do makes a call by the clients of p, and notes what it was told.
func (w *world) do(p *port, way *way, c call) *told {
	d := &told{call: c, way: way, p: p, began: len(w.history)}
	p.call = d
	ctx, cancel := context.WithTimeout(w.ctx(), 10*time.Minute)
	defer cancel()
	p.giveUp = cancel
	began := time.Now()
	d.res, d.err = way.run(ctx, p, c)
	d.res.Elapsed = time.Since(began)
	w.history = append(w.history, entry{told: d})
	return d
}

// port is one process: its clients, and what remembers something between its calls.
type port struct {
	w         *world
	transport policy.Transporter
	call      *told          // under way, or the last one
	kept      map[string]any // Documents and counters
	flush     func()         // delivers what the network holds back
	giveUp    func()         // ends the context of the call under way
}

// keep returns what the process keeps under a name.
func keep[T any](p *port, name string, open func() (T, error)) (T, error) {
	if kept, ok := p.kept[name].(T); ok {
		return kept, nil
	}
	v, err := open()
	if err == nil {
		p.kept[name] = v
	}
	return v, err
}

// latency is how long a request is under way, and its answer.
const latency = 2 * time.Millisecond

// tap passes a request on, and notes what it has changed.
type tap struct {
	p         *port
	delivered func() // after a delivered write; may be nil
}

func (t tap) Do(r *http.Request) (*http.Response, error) {
	bubble.Sleep(latency)
	defer bubble.Sleep(latency)
	resp, err := t.p.w.s.Do(r)
	if d := aztest.Describe(r); err == nil && commits(&d) {
		t.p.w.observe(t.p.call)
		if t.delivered != nil {
			t.delivered()
		}
	}
	return resp, err
}

// commits selects the requests that change the resource, besides those that prepare one.
func commits(r *aztest.Request) bool {
	return aztest.Writes(r) && !strings.Contains(r.Op, "Lease") && r.Op != "Put Block"
}

// process returns a process whose network has no faults.
func (w *world) process() *port {
	p := &port{w: w, kept: map[string]any{}}
	p.transport = tap{p: p}
	return p
}

// stage is the network of the process whose call is examined: faults, and what happens during them.
type stage struct {
	meanwhile func() // runs once: before the first write without a fault, and else after its first delivery or its loss
	quiet     bool   // there are no faults
	skip      int    // writes that prepare the one that matters
	injector  *aztest.Injector
	mu        sync.Mutex
	left      int    // requests until the caller gives up
	giveUp    func() // nil if it does not
}

func (s *stage) happen() {
	if run := s.meanwhile; run != nil && s.skip <= 0 {
		s.meanwhile = nil
		run()
	}
}

func (s *stage) Do(r *http.Request) (*http.Response, error) {
	d := aztest.Describe(r)
	if s.quiet && aztest.Writes(&d) {
		s.happen()
	}
	resp, err := s.injector.Do(r)
	if commits(&d) {
		s.happen()
		s.skip--
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.left--; s.left == 0 && s.giveUp != nil {
		s.giveUp()
	}
	return resp, err
}

// staged returns a process with a fault in its network. begun reports whether what the fault does at one of the requests has happened.
func (w *world) staged(f fault, at, skip int, meanwhile func()) (_ *port, begun func() bool) {
	p := &port{w: w, kept: map[string]any{}}
	st := &stage{meanwhile: meanwhile, quiet: f.kind == "" && f.outage == "", skip: skip, left: at}
	st.injector = aztest.Inject(tap{p, st.happen}, 1)
	begun = func() bool { return f.givesUp && st.left <= 0 }
	if f.givesUp {
		st.giveUp = func() { p.giveUp() }
	}
	switch {
	case f.outage != "":
		o := &outages.Outage{Kind: f.outage, Lasts: 200 * time.Millisecond, At: at}
		st.injector.SetFaults(o.Fault())
		begun = func() bool { return !o.End().IsZero() }
	case f.rare.Kind != "":
		f.rare.Skip = skip
		st.injector.SetFaults(f.rare)
	case f.kind != "":
		st.injector.SetFaults(aztest.Fault{Kind: f.kind, Match: commits, Skip: skip, Count: max(f.count, 1), Delay: f.delay})
	}
	p.transport, p.flush = st, st.injector.Flush
	return p, begun
}

func (p *port) options() policy.ClientOptions { return policy.ClientOptions{Transport: p.transport} }

func (p *port) container() *container.Client { return p.containerOf("box-" + p.w.name) }

func (p *port) containerOf(name string) *container.Client {
	return must(container.NewClientWithNoCredential(p.w.s.BlobURL()+"/"+name, &container.ClientOptions{ClientOptions: p.options()}))
}

func (p *port) table() *aztables.Client {
	return must(aztables.NewServiceClientWithNoCredential(p.w.s.TableURL(), &aztables.ClientOptions{ClientOptions: p.options()})).NewClient("t" + p.w.name)
}

func (p *port) queue() *azqueue.QueueClient {
	return must(azqueue.NewQueueClientWithNoCredential(p.w.s.QueueURL()+"/queue-"+p.w.name, &azqueue.ClientOptions{ClientOptions: p.options()}))
}

// must returns a client of the SDK. The in-memory service's own URLs make no error.
func must[T any](client T, err error) T {
	if err != nil {
		panic(err)
	}
	return client
}

// open prepares the resource of a place in a new service.
func open(t *testing.T, pl *place, name string, absent bool) *world {
	w := &world{t: t, place: pl, name: name}
	w.s = aztest.New(&aztest.Options{Anonymous: true, DeletionDelay: -1, WithoutLog: true})
	pl.prepare(w)
	if !absent {
		pl.create(w, "0")
	}
	w.values = pl.read(w)
	return w
}

func (d *told) String() string {
	said := fmt.Sprintf("%v", d.err)
	if d.err == nil {
		said = fmt.Sprintf("changed %t, already %t", d.res.Changed, d.res.AlreadyApplied)
	}
	return fmt.Sprintf("%s of %s: %s (%d attempts, %d ambiguous, %v)", d.way.name, d.mark, said, d.res.Attempts, d.res.Ambiguous, d.res.Elapsed)
}

// story tells a history in lines.
func (w *world) story() string {
	var b strings.Builder
	for _, e := range w.history {
		switch {
		case e.told != nil:
			fmt.Fprintf(&b, "\n\t\t%v", e.told)
		case e.forgot:
			b.WriteString("\n\t\tforgotten")
		default:
			fmt.Fprintf(&b, "\n\t\tstored %v", e.values)
		}
	}
	return b.String()
}
