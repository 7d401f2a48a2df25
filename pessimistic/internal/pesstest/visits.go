package pesstest

import (
	"context"
	"errors"
	"math/rand/v2"
	"net/http"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/storage/azblob/container"

	"github.com/azconc/azconc/pkg/aztest"
	"github.com/azconc/azconc/pkg/aztest/bubble"
	"github.com/azconc/azconc/pkg/fence"
)

// Holder holds a lock.
type Holder interface {
	Context() context.Context
	Fence() fence.Token
}

// Visit is the time during which a holder was allowed to work.
type Visit struct {
	From, To time.Time
	Kind     string // "read", "write", "slot", "lead"
	Fence    fence.Token
}

// Visits are the visits of many processes, some of which crash.
type Visits struct {
	mu  sync.Mutex
	all []Visit
}

// All returns the visits in the order of their beginnings.
func (v *Visits) All() []Visit {
	v.mu.Lock()
	defer v.mu.Unlock()
	return slices.SortedFunc(slices.Values(v.all), func(a, b Visit) int { return a.From.Compare(b.From) })
}

// Process is one of the processes that Among runs.
type Process struct {
	*World
	ID     int
	Rand   *rand.Rand
	Client *container.Client

	cut atomic.Bool // no request of the Client gets through
}

// Do implements policy.Transporter.
func (p *Process) Do(r *http.Request) (*http.Response, error) {
	if p.cut.Load() {
		return nil, errors.New("the process has crashed")
	}
	return p.Faults.Do(r)
}

// Visit works for a while. In one of 8 visits the process crashes: it renews nothing any more, and its lease expires. A
// nil release means that the caller releases.
func (v *Visits) Visit(p *Process, kind string, h Holder, release func(context.Context) error) {
	one := Visit{From: time.Now(), Kind: kind, Fence: h.Fence()}
	ended := make(chan time.Time, 1)
	stop := context.AfterFunc(h.Context(), func() { ended <- time.Now() })
	bubble.Sleep(time.Duration(p.Rand.Int64N(int64(4 * time.Second))))
	if p.Rand.IntN(8) == 0 {
		p.cut.Store(true)
		defer p.cut.Store(false)
		<-h.Context().Done()
	}
	if release != nil {
		_ = release(context.Background())
	} else if stop() {
		ended <- time.Now()
	}
	one.To = <-ended
	v.mu.Lock()
	defer v.mu.Unlock()
	v.all = append(v.all, one)
}

// Among runs processes over a service with faults. No blob may be leased once they have ended and the shortest lease has
// expired.
func Among(t *testing.T, seed uint64, processes int, live func(p *Process)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		w := New(t, WithLatency(seed))
		w.Faults.SetFaults(aztest.Fault{Kind: aztest.LoseAnswer, Probability: 0.03}, aztest.Fault{Kind: aztest.LoseRequest, Probability: 0.03},
			aztest.Fault{Kind: aztest.Throttle, Probability: 0.03})
		var all sync.WaitGroup
		for i := range processes {
			p := &Process{World: w, ID: i, Rand: rand.New(rand.NewPCG(seed, uint64(i)))}
			p.Client = w.ContainerOver(p)
			all.Go(func() { live(p) })
		}
		all.Wait()
		bubble.Sleep(16 * time.Second) // a release that was lost leaves a lease until it expires
		for _, name := range w.Leased() {
			t.Errorf("seed %d: %s is still leased", seed, name)
		}
	})
}
