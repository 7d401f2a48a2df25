// Package outages lets a service fail for a while, from any of the requests of a test on.
//
// It is public because tests of every package of this module use it, and an internal package could not reach all of them.
package outages

import (
	"fmt"
	"net/http"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/azconc/azconc/pkg/aztest"
)

// Outage is a time in which a service carries out no request, or, with aztest.LoseAnswer, answers none. It is safe for
// concurrent use.
type Outage struct {
	Kind  aztest.FaultKind
	Lasts time.Duration
	At    int // the request with which it begins, 1 for the first

	mu   sync.Mutex // guards what follows
	seen int
	from time.Time
}

// Each runs test in a bubble of testing/synctest with an outage of each kind, of 0.2 to 30 s, that begins with the first
// request, with the second, and so on, until a run has ended before its outage began. With -short, each lasts 3 s.
func Each(t *testing.T, test func(t *testing.T, o *Outage)) {
	for _, kind := range []aztest.FaultKind{aztest.Refuse, aztest.LoseRequest, aztest.LoseAnswer, aztest.Throttle, aztest.Page, aztest.Hang} {
		for _, lasts := range []time.Duration{200 * time.Millisecond, time.Second, 3 * time.Second, 10 * time.Second, 30 * time.Second} {
			if testing.Short() && lasts != 3*time.Second {
				continue
			}
			t.Run(fmt.Sprint(kind, " for ", lasts), func(t *testing.T) {
				for at, more := 1, true; more && !t.Failed(); at++ {
					o := &Outage{Kind: kind, Lasts: lasts, At: at}
					synctest.Test(t, func(t *testing.T) { test(t, o) })
					if more = !o.End().IsZero(); t.Failed() {
						t.Logf("the outage began with request %d", at)
					}
				}
			})
		}
	}
}

// Fault is the outage, for the service or for one of its clients. The Page of an intermediary has status 502.
func (o *Outage) Fault() aztest.Fault {
	return aztest.Fault{Kind: o.Kind, Status: http.StatusBadGateway, Match: func(*aztest.Request) bool {
		o.mu.Lock()
		defer o.mu.Unlock()
		if o.seen++; o.seen == o.At {
			o.from = time.Now()
		}
		return o.seen >= o.At && time.Since(o.from) < o.Lasts
	}}
}

// End returns when the outage ends or has ended; zero if it has not begun.
func (o *Outage) End() time.Time {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.from.IsZero() {
		return time.Time{}
	}
	return o.from.Add(o.Lasts)
}
