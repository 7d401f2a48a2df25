//go:build !race

package pessimistic_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/azconc/azconc/pessimistic"
	"github.com/azconc/azconc/pessimistic/internal/pesstest"
	"github.com/azconc/azconc/pkg/aztest"
	"github.com/azconc/azconc/pkg/aztest/bubble"
	"github.com/azconc/azconc/pkg/aztest/outages"
	"github.com/azconc/azconc/pkg/fence"
	"github.com/azconc/azconc/pkg/retry"
)

// town is one case in progress: processes that want one lock in a service of their own, and what happened to them.
type town struct {
	*pesstest.World
	combination
	began  time.Time
	all    []*process
	slow   time.Duration   // how late the answers to the first process come
	late   sync.WaitGroup  // what holders write after they have lost it
	outage *outages.Outage // nil unless the fault is one

	mu      sync.Mutex // guards what follows
	leases  []*leased
	stamps  []stamp
	visits  []*visit
	calls   []*called
	writes  []*written
	cuts    []cut
	line    []ticket
	refused []string // leases that the service has refused to renew
	wrong   []string
	count   int // requests that reached the service
}

// leased is a lease as the service granted it.
type leased struct {
	by           *process // nil for what the test does itself
	resource, id string
	from, until  time.Time
	lasts        time.Duration
	due          time.Time // when it ends unless it is renewed, released or broken
	ended        string    // by whom, if not by the holder or the time
}

// stamp is a record of a holder, as the service stored it.
type stamp struct {
	at              time.Time
	resource, nonce string
	fence           fence.Token
}

// visit is the time in which a holder may work: until its context ends.
type visit struct {
	p        *process
	name, id string
	kind     string // "alone", "slot", "read"
	fence    fence.Token
	from, to time.Time // to is zero while it lasts
	valid    time.Time // until when the holder took itself for one, after a loss
	hold     *pessimistic.Hold
}

// cut is a moment from which on holders of a blob do not know that they have lost it.
type cut struct {
	name string
	at   time.Time
}

// called is a call, and what it said at its end.
type called struct {
	p            *process
	opts         pessimistic.LockOptions
	kind         string
	began, ended time.Time
	got          time.Time // when it held the lock first; zero if it never did
	works        int       // how often it held the lock
	gaveUp       bool
	err          error
}

// written is a write under a fence.
type written struct {
	on           string
	mark         string
	fence        fence.Token
	began, ended time.Time
	err          error
}

func (w *town) complain(format string, args ...any) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.wrong = append(w.wrong, fmt.Sprintf("%v: ", time.Since(w.began).Round(time.Millisecond))+fmt.Sprintf(format, args...))
}

// check ends the case if what the test itself does has failed.
func (w *town) check(err error) {
	if err != nil {
		w.T.Fatalf("%v: the test's own request: %v", w.combination, err)
	}
}

// Do implements policy.Transporter, for what the test does itself.
func (w *town) Do(r *http.Request) (*http.Response, error) { return tap{w, nil}.Do(r) }

// tap is between the faults of a process and the service.
type tap struct {
	*town
	by *process
}

// Do passes a request on to the service, and notes what that tells of leases and fences.
func (w tap) Do(r *http.Request) (*http.Response, error) {
	resp, err := w.Service.Do(r)
	if err != nil {
		return resp, err
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	w.count++
	if resp.StatusCode/100 != 2 {
		return resp, nil
	}
	_, resource, _ := strings.Cut(strings.TrimPrefix(r.URL.Path, "/"+aztest.Account+"/"), "/")
	header, now := func(name string) string { return pesstest.Header(r.Header, name) }, time.Now()
	id := strings.ToLower(resp.Header.Get("x-ms-lease-id"))
	if id == "" {
		id = strings.ToLower(header("x-ms-lease-id"))
	}
	switch action := header("x-ms-lease-action"); {
	case action == "acquire":
		seconds, _ := strconv.Atoi(header("x-ms-lease-duration"))
		lasts := time.Duration(seconds) * time.Second
		if seconds < 0 {
			lasts = 24 * time.Hour
		}
		w.end(resource, "", now) // a lease of that id begins again
		w.leases = append(w.leases, &leased{by: w.by, resource: resource, id: id, from: now, until: now.Add(lasts), lasts: lasts, due: now.Add(lasts)})
	case action == "renew":
		for _, l := range w.leases {
			if l.id == id && l.resource == resource && l.ended == "" {
				l.until, l.due = now.Add(l.lasts), now.Add(l.lasts)
			}
		}
	case action == "release", r.Method == http.MethodDelete:
		w.end(resource, "", now)
	case action == "break":
		seconds, _ := strconv.Atoi(resp.Header.Get("x-ms-lease-time"))
		w.end(resource, "break", now.Add(time.Duration(seconds)*time.Second))
	case r.URL.Query().Get("comp") == "appendblock" && r.ContentLength == 64:
		w.line = append(w.line, ticket{w.by, now})
	case r.URL.Query().Get("comp") == "metadata":
		token, _ := fence.Parse(header("x-ms-meta-azconcfence"))
		if nonce := header("x-ms-meta-azconcnonce"); !slices.ContainsFunc(w.stamps, func(s stamp) bool { return s.nonce == nonce }) {
			w.stamps = append(w.stamps, stamp{now, resource, nonce, token})
		}
	}
	return resp, nil
}

// end notes the end of what is leased. It is called with mu held.
func (w *town) end(resource, by string, at time.Time) {
	for _, l := range w.leases {
		if l.resource == resource && at.Before(l.until) {
			l.until, l.ended = at, by
		}
	}
}

// ticket is a place in the line of those who wait.
type ticket struct {
	by *process
	at time.Time
}

// process is one process: a network, clocks and a Locker.
type process struct {
	*town
	name     string
	injector *aztest.Injector
	locker   *pessimistic.Locker

	state  sync.Mutex    // guards what follows
	jumped time.Duration // by how much its clock has jumped
	asleep time.Time     // until when it sends nothing, and hears nothing
	slow   time.Duration // how late its answers come
	dead   bool
}

var errKilled = errors.New("killed")

// Do implements policy.Transporter. What a sleeping machine has sent arrives when it wakes, even if nobody waits for the answer any more.
func (p *process) Do(r *http.Request) (*http.Response, error) {
	p.state.Lock()
	dead, asleep, slow := p.dead, time.Until(p.asleep), p.slow
	p.state.Unlock()
	if dead {
		bubble.Sleep(slow)
		return nil, errKilled
	}
	if asleep > 0 {
		defer bubble.Sleep(slow)
		bubble.Sleep(asleep)
		resp, err := tap{p.town, p}.Do(r.WithContext(context.WithoutCancel(r.Context())))
		if r.Context().Err() != nil && err == nil {
			resp.Body.Close()
			return nil, r.Context().Err()
		}
		return resp, err
	}
	resp, err := p.injector.Do(r)
	if bubble.Sleep(slow); err == nil {
		p.hears(r, resp)
	}
	return resp, err
}

func (p *process) jump() time.Duration {
	p.state.Lock()
	defer p.state.Unlock()
	return p.jumped
}

func (p *process) is(change func()) {
	p.state.Lock()
	defer p.state.Unlock()
	change()
}

// comes returns a process that comes to the town.
func (w *town) comes(name string, change func(*pessimistic.LockerOptions)) *process {
	p := &process{town: w, name: name}
	p.injector = aztest.Inject(tap{w, p}, 0)
	o := pessimistic.LockerOptions{Owner: name, Duration: 15 * time.Second}
	if change != nil {
		change(&o)
	}
	o.LieAbout(p.jump)
	k, err := pessimistic.NewLocker(w.ContainerOver(p), &o)
	w.check(err)
	p.locker = k
	return p
}

// ctx returns a context for the calls of a case.
func (w *town) ctx() context.Context {
	return retry.WithRandom(context.Background(), func() float64 { return 0.5 })
}

// patience bounds each call: nothing in a case lasts nearly as long.
const patience = 8 * time.Minute

// calls makes a call of the way, and notes its result.
func (p *process) calls(kind string, opts pessimistic.LockOptions, lasts, cancel time.Duration) *called {
	c := &called{p: p, opts: opts, kind: kind, began: time.Now(), gaveUp: cancel > 0}
	p.mu.Lock()
	p.town.calls = append(p.town.calls, c)
	p.mu.Unlock()
	ctx, end := context.WithTimeout(p.ctx(), patience)
	defer end()
	if cancel > 0 {
		var stop context.CancelFunc
		ctx, stop = context.WithTimeout(ctx, cancel)
		defer stop()
	}
	err := p.way.do(ctx, p, c, &opts, func(ctx context.Context, h holder) error { return p.work(ctx, c, h, lasts) })
	p.mu.Lock()
	defer p.mu.Unlock()
	c.err, c.ended = err, time.Now()
	return c
}

// open prepares a town.
func open(t *testing.T, k combination) *town {
	o := pesstest.WithLatency(1)
	o.Anonymous = true
	w := &town{World: pesstest.New(t, o), combination: k}
	w.began = time.Now()
	if f := k.fault; f.outage != "" {
		w.outage = &outages.Outage{Kind: f.outage, Lasts: f.lasts, At: k.at}
	}
	return w
}
