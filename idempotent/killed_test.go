//go:build !race

// Simulated time with thousands of requests, each of which takes ten times as long with the race detector: scripts/test runs
// this file without it.

package idempotent

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"net/http"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore/policy"

	"github.com/azconc/azconc/pkg/aztest"
)

// TestAKilledProcessRepeatsABoundedNumberOfMessages kills a process whose handlers have returned while the table does not answer
// the writes of their markers, and lets another process finish the queue.
func TestAKilledProcessRepeatsABoundedNumberOfMessages(t *testing.T) {
	for _, concurrency := range []int{1, 40} {
		most := 0
		for _, answered := range []int{0, 3} {
			for _, kill := range []time.Duration{5 * time.Millisecond, 5 * time.Second} {
				if testing.Short() && (answered == 0) != (kill < time.Second) {
					continue
				}
				t.Run(fmt.Sprint(concurrency, answered, kill), func(t *testing.T) {
					inBubble(t, func(t *testing.T, r *rig) {
						n := r.repeats(concurrency, answered, kill)
						most = max(most, n)
						if bound := 2*concurrency + 127; n > bound {
							t.Errorf("%d messages were handled again, more than %d", n, bound)
						}
						if left := len(r.left(r.queue)); left != 0 {
							t.Errorf("%d messages left", left)
						}
					})
				})
			}
		}
		t.Logf("concurrency %d: at most %d messages were handled again", concurrency, most)
		if most < concurrency+maxClosing {
			t.Errorf("concurrency %d: at most %d messages were handled again: no kill came when many markers were not written", concurrency, most)
		}
	}
}

// silent is a transport that never answers the writes of markers of handled messages after the first few.
type silent struct {
	policy.Transporter
	answered atomic.Int64 // writes that are answered
}

func (s *silent) Do(r *http.Request) (*http.Response, error) {
	if r.Body == nil {
		return s.Transporter.Do(r)
	}
	body, err := io.ReadAll(r.Body)
	if err != nil {
		return nil, err
	}
	r.Body = io.NopCloser(bytes.NewReader(body))
	if bytes.Contains(body, []byte(`"state":"done"`)) && s.answered.Add(-1) < 0 {
		<-r.Context().Done()
		return nil, r.Context().Err()
	}
	return s.Transporter.Do(r)
}

// repeats kills a consumer some time after its table has stopped to answer the writes of markers, and returns how many of the
// messages that it handled another consumer handles again.
func (r *rig) repeats(concurrency, answered int, kill time.Duration) (n int) {
	ids := make([]string, 300)
	for i := range ids {
		ids[i] = fmt.Sprint(i)
	}
	r.send(ids...)
	var (
		mu    sync.Mutex
		dead  bool
		first = map[string]bool{}
	)
	killed := r.process()
	table := &silent{Transporter: killed.wire}
	table.answered.Store(int64(answered))
	markers := r.markersOver(table)
	ctx, stop := context.WithCancel(context.Background())
	c, err := NewConsumer(killed.queue, func(_ context.Context, m *Message) error {
		mu.Lock()
		defer mu.Unlock()
		if dead {
			return errBusy // a process that was killed runs no handler
		}
		if first[m.Key] {
			r.t.Errorf("%s was handled twice before the kill", m.Key)
		}
		first[m.Key] = true
		return nil
	}, &ConsumerOptions{Markers: markers, Concurrency: concurrency, Poll: pollEvery(time.Second), Visibility: time.Minute})
	if err != nil {
		r.t.Fatal(err)
	}
	var running sync.WaitGroup
	running.Go(func() { _ = c.Run(ctx) })
	for table.answered.Load() >= 0 {
		pass(time.Millisecond)
	}
	pass(kill)
	mu.Lock()
	dead = true
	mu.Unlock()
	killed.wire.SetFaults(aztest.Fault{Kind: aztest.LoseRequest})
	stop()
	running.Wait()
	r.queueConsume(r.process(), func(m *Message) {
		mu.Lock()
		defer mu.Unlock()
		if first[m.Key] {
			n++
		}
	})
	return n
}

// queueConsume has a process handle what is in the queue.
func (r *rig) queueConsume(p *process, handle func(*Message)) {
	c, err := NewConsumer(p.queue, func(_ context.Context, m *Message) error { handle(m); return nil },
		&ConsumerOptions{Markers: p.markers, Concurrency: 8, Poll: pollEvery(time.Second)})
	if err != nil {
		r.t.Fatal(err)
	}
	ctx, stop := context.WithCancel(context.Background())
	var running sync.WaitGroup
	running.Go(func() { _ = c.Run(ctx) })
	for range 600 {
		if pass(time.Second); len(r.left(r.queue)) == 0 {
			break
		}
	}
	stop()
	running.Wait()
}
