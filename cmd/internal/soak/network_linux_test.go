package soak

import (
	"hash/fnv"
	"net/http"
	"net/http/httptest"
	"net/url"
	"sync/atomic"
	"time"

	"github.com/azconc/azconc/pkg/aztest"
	"github.com/azconc/azconc/pkg/azurite"
)

// faults is what the network does to 8 % of the requests.
var faults = []aztest.Fault{
	{Kind: aztest.LoseRequest, Probability: 0.010},
	{Kind: aztest.LoseAnswer, Probability: 0.012},
	{Kind: aztest.CutAnswer, Probability: 0.004},
	{Kind: aztest.Truncate, Probability: 0.004},
	{Kind: aztest.Rechunk, Probability: 0.004},
	{Kind: aztest.Slow, Probability: 0.010, Delay: 300 * time.Millisecond},
	{Kind: aztest.Page, Probability: 0.006, Status: http.StatusServiceUnavailable},
	{Kind: aztest.PageAfterCommit, Probability: 0.004},
	{Kind: aztest.Throttle, Probability: 0.005, RetryAfter: time.Second},
	{Kind: aztest.FailAfterCommit, Probability: 0.004},
	{Kind: aztest.AnswerTwice, Probability: 0.005},
	{Kind: aztest.RepeatAtOnce, Probability: 0.005},
	{Kind: aztest.RepeatLater, Probability: 0.005, Delay: 1500 * time.Millisecond},
	{Kind: aztest.CommitAfterBreak, Probability: 0.005, Delay: 800 * time.Millisecond},
}

// line is one worker's way to the three services: a proxy over TCP for each.
type line struct {
	account azurite.Account // as seen through the line
	proxies []*aztest.Proxy
	servers []*httptest.Server
	cut     atomic.Pointer[chan struct{}] // nil, or closed when the line is restored
	dropped atomic.Int64                  // requests that met a cut line
}

// newLine makes a line. The faults are drawn from the seed: the same requests in the same order meet the same ones.
func newLine(a azurite.Account, name string, seed uint64) *line {
	l := &line{account: a}
	for i, service := range []*string{&l.account.BlobURL, &l.account.QueueURL, &l.account.TableURL} {
		target, err := url.Parse(*service)
		must(err)
		proxy := aztest.NewProxy(target, seed^hash(name)+uint64(i), faults...)
		server := httptest.NewServer(l.gate(proxy.Handler()))
		l.proxies, l.servers = append(l.proxies, proxy), append(l.servers, server)
		*service = server.URL + "/" + a.Name
	}
	return l
}

// gate lets requests through unless the line is cut. Then half of them wait until it is restored and break, and the others
// break at once.
func (l *line) gate(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if cut := l.cut.Load(); cut != nil {
			if l.dropped.Add(1)%2 == 0 {
				select {
				case <-*cut:
				case <-r.Context().Done():
				}
			}
			panic(http.ErrAbortHandler)
		}
		next.ServeHTTP(w, r)
	})
}

func (l *line) sever() {
	c := make(chan struct{})
	l.cut.Store(&c)
}

func (l *line) restore() {
	if c := l.cut.Swap(nil); c != nil {
		close(*c)
	}
}

// calm ends the faults, and delivers what was held back.
func (l *line) calm() {
	l.restore()
	for _, p := range l.proxies {
		p.SetFaults()
		p.Flush()
	}
}

// met returns how many requests met each kind of fault. The proxies' logs are emptied: they would grow for ever.
func (l *line) met() map[aztest.FaultKind]int {
	sum := map[aztest.FaultKind]int{"cut-line": int(l.dropped.Load())}
	for _, p := range l.proxies {
		p.Reset()
		for kind, n := range p.Met() {
			sum[kind] += n
		}
	}
	return sum
}

func (l *line) close() {
	l.restore()
	for i, s := range l.servers {
		s.CloseClientConnections()
		s.Close()
		l.proxies[i].Close()
	}
}

func hash(s string) uint64 {
	h := fnv.New64a()
	_, _ = h.Write([]byte(s))
	return h.Sum64()
}
