package idempotent

import (
	"context"
	"fmt"
	"net/http"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/azconc/azconc/pkg/aztest"
	"github.com/azconc/azconc/pkg/azurite/azuritetest"
	"github.com/azconc/azconc/pkg/observe"
)

// narrow is a service that carries out one request at a time, each of which takes some time.
type narrow struct {
	next *aztest.Service
	took func(r *http.Request) time.Duration
	turn chan struct{}
}

func newNarrow(s *aztest.Service, took func(r *http.Request) time.Duration) *narrow {
	n := &narrow{next: s, took: took, turn: make(chan struct{}, 1)}
	n.turn <- struct{}{}
	return n
}

func (s *narrow) Do(r *http.Request) (*http.Response, error) {
	select {
	case <-s.turn:
	case <-r.Context().Done():
		return nil, r.Context().Err()
	}
	pass(s.took(r))
	resp, err := s.next.Do(r)
	s.turn <- struct{}{}
	return resp, err
}

// crowd runs consumers until n messages are handled.
func (r *rig) crowd(consumers, n int, o ConsumerOptions, handler Handler) {
	r.t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	var handled atomic.Int64
	var all sync.WaitGroup
	for range consumers {
		c := r.consumer(func(ctx context.Context, m *Message) error {
			err := handler(ctx, m)
			if handled.Add(1) == int64(n) {
				cancel()
			}
			return err
		}, o)
		all.Go(func() {
			if err := c.Run(ctx); err != nil {
				r.t.Error(err)
			}
		})
	}
	all.Wait()
}

// When a table took several seconds for a claim, messages were given back as if they had waited for a handler, and each was
// claimed, returned and claimed again: 20,000 table requests and 13,000 returns for 2,000 messages.
func TestFiftyConsumersShareASlowTable(t *testing.T) {
	n := 2000
	if testing.Short() {
		n = 1000
	}
	inBubble(t, func(t *testing.T, r *rig) {
		for i := range n {
			r.send(fmt.Sprintf("m%04d", i))
		}
		r.service.Reset()
		markers, err := NewMarkers(r.table("markers", newNarrow(r.service, func(req *http.Request) time.Duration {
			return 20*time.Millisecond + time.Duration(req.ContentLength/500)*time.Millisecond
		})), nil)
		if err != nil {
			t.Fatal(err)
		}
		r.crowd(50, n, ConsumerOptions{Markers: markers}, func(context.Context, *Message) error {
			pass(20 * time.Millisecond)
			return nil
		})
		if got := r.kinds(); len(got) != n || slices.ContainsFunc(got, func(k observe.Kind) bool { return k != observe.Completed }) {
			t.Errorf("%d events that are not all completions", len(got))
		}
		if ops := r.ops(); ops["Entity Group Transaction"] > n/6 || r.service.Requests() > n*3/2 {
			t.Errorf("%d requests for %d messages: %v", r.service.Requests(), n, ops)
		}
	})
}

// With -short these are ten.
func TestFiftyConsumersOnAzurite(t *testing.T) {
	n, consumers := 400, 50
	if testing.Short() {
		n, consumers = 80, 10
	}
	f := farOnAzurite(t, azuritetest.Account(t))
	f.fill(n)
	before := f.wire.Requests()
	began := time.Now()
	f.crowd(consumers, n, ConsumerOptions{Markers: f.markers, Poll: pollEvery(time.Second)}, func(context.Context, *Message) error { return nil })
	starved := time.Since(began) > 15*time.Second // consumers that are not scheduled in time lose what they hold
	handled := 0
	for _, e := range f.events {
		switch e.Kind {
		case observe.Completed:
			handled++
		case observe.Returned, observe.Failed, observe.Lost:
			if !starved {
				t.Errorf("%s: %v", e.Kind, e.Err)
			}
		}
	}
	if per := float64(f.wire.Requests()-before) / float64(n); handled < n || f.length() != 0 || !starved && (handled > n || per > 2.5) {
		t.Errorf("%d handled, %d left, %.2f requests per message", handled, f.length(), per)
	}
}
