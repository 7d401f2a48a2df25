package idempotent

import (
	"context"
	"runtime/debug"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore/policy"
	"github.com/Azure/azure-sdk-for-go/sdk/azcore/to"
	"github.com/Azure/azure-sdk-for-go/sdk/data/aztables"
	"github.com/Azure/azure-sdk-for-go/sdk/storage/azqueue/v2"
	"go.uber.org/goleak"

	"github.com/azconc/azconc/idempotent/internal/format"
	"github.com/azconc/azconc/idempotent/internal/markers"
	"github.com/azconc/azconc/optimistic"
	"github.com/azconc/azconc/optimistic/tables"
	"github.com/azconc/azconc/pkg/aztest"
	"github.com/azconc/azconc/pkg/aztest/bubble"
	"github.com/azconc/azconc/pkg/azurite/azuritetest"
	"github.com/azconc/azconc/pkg/observe"
	"github.com/azconc/azconc/pkg/retry"
)

func TestMain(m *testing.M) {
	debug.SetGCPercent(400) // requests in simulated time leave much to collect, and little is in use
	goleak.VerifyTestMain(azuritetest.StopAfter(m))
}

// rig is the in-memory service with a queue, a poison queue, a table of markers and a table of effects.
type rig struct {
	t       testing.TB
	service *aztest.Service
	queue   *azqueue.QueueClient // with Policy
	poison  *azqueue.QueueClient
	markers *Markers
	effects *aztables.Client
	inbox   *Inbox
	plain   *azqueue.ServiceClient // kept: the SDK makes a client at the cost of some requests

	mu     sync.Mutex
	events []observe.Event
}

func newRig(t *testing.T) *rig {
	t.Helper()
	return newRigOn(t, aztest.New(nil))
}

func newRigOn(t testing.TB, s *aztest.Service) *rig {
	t.Helper()
	r := &rig{t: t, service: s, effects: tableClient(t, s, "effects"), plain: s.QueueService()}
	s.Queue("orders")
	s.Queue("orders-poison")
	r.queue, r.poison = r.client("orders", s), r.client("orders-poison", s)
	var err error
	if r.markers, err = NewMarkers(tableClient(t, s, "markers"), &MarkersOptions{KeepExpired: true}); err != nil {
		t.Fatal(err)
	}
	if r.inbox, err = NewInbox(r.effects, &InboxOptions{KeepExpired: true}); err != nil {
		t.Fatal(err)
	}
	s.Reset()
	return r
}

// tableClient returns a client, with Policy, of a table, and creates the table if it is missing.
func tableClient(t testing.TB, s *aztest.Service, name string) *aztables.Client {
	t.Helper()
	s.Table(name)
	credential, err := aztables.NewSharedKeyCredential(aztest.Account, aztest.Key)
	if err != nil {
		t.Fatal(err)
	}
	o := s.ClientOptions()
	o.PerRetryPolicies = append(o.PerRetryPolicies, Policy())
	service, err := aztables.NewServiceClientWithSharedKey(s.TableURL(), credential, &aztables.ClientOptions{ClientOptions: o})
	if err != nil {
		t.Fatal(err)
	}
	return service.NewClient(name)
}

func (r *rig) client(name string, transport policy.Transporter) *azqueue.QueueClient {
	r.t.Helper()
	credential, err := azqueue.NewSharedKeyCredential(aztest.Account, aztest.Key)
	if err != nil {
		r.t.Fatal(err)
	}
	client, err := azqueue.NewQueueClientWithSharedKeyCredential(r.service.QueueURL()+"/"+name, credential, &azqueue.ClientOptions{
		ClientOptions: policy.ClientOptions{Transport: transport, PerRetryPolicies: []policy.Policy{Policy()}}})
	if err != nil {
		r.t.Fatal(err)
	}
	return client
}

func inBubble(t *testing.T, test func(t *testing.T, r *rig)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) { test(t, newRig(t)) })
}

// send sends bodies, with their texts as ids.
func (r *rig) send(ids ...string) {
	r.t.Helper()
	p, err := NewProducer(r.queue, nil)
	if err != nil {
		r.t.Fatal(err)
	}
	for _, id := range ids {
		if _, err := p.Send(context.Background(), Outgoing{ID: id, Body: []byte(id)}); err != nil {
			r.t.Fatal(err)
		}
	}
}

func (r *rig) consumer(h Handler, o ConsumerOptions) *Consumer {
	r.t.Helper()
	o = withoutMarkers(o)
	o.Hooks.Event = func(_ context.Context, e observe.Event) {
		r.mu.Lock()
		defer r.mu.Unlock()
		r.events = append(r.events, e)
	}
	c, err := NewConsumer(r.queue, h, &o)
	if err != nil {
		r.t.Fatal(err)
	}
	return c
}

// consume runs a consumer until the queue is empty, hidden messages included.
func (r *rig) consume(h Handler, o ConsumerOptions) *Consumer {
	r.t.Helper()
	c := r.consumer(h, o)
	ctx, cancel := context.WithCancel(context.Background())
	var all sync.WaitGroup
	all.Go(func() {
		if err := c.Run(ctx); err != nil {
			r.t.Errorf("Run: %v", err)
		}
	})
	for range 1000 {
		bubble.Sleep(time.Second)
		if len(r.left(r.queue)) == 0 {
			break
		}
	}
	bubble.Sleep(time.Second)
	cancel()
	all.Wait()
	return c
}

// left returns a slice as long as the queue, hidden messages included. Its request is not in the log.
func (r *rig) left(q *azqueue.QueueClient) []string {
	r.t.Helper()
	p, err := r.plain.NewQueueClient(name(q)).GetProperties(context.Background(), nil)
	if err != nil {
		r.t.Fatal(err)
	}
	return make([]string, *p.ApproximateMessagesCount)
}

func name(q *azqueue.QueueClient) string {
	for _, n := range []string{"orders-poison", "orders"} {
		if len(q.URL()) > len(n) && q.URL()[len(q.URL())-len(n):] == n {
			return n
		}
	}
	return ""
}

// buried decodes what is in the poison queue.
func (r *rig) buried() (all []format.Message) {
	r.t.Helper()
	resp, err := r.poison.PeekMessages(context.Background(), &azqueue.PeekMessagesOptions{NumberOfMessages: to.Ptr(int32(32))})
	if err != nil {
		r.t.Fatal(err)
	}
	for _, m := range resp.Messages {
		all = append(all, format.Detect(*m.MessageText))
	}
	return all
}

func (r *rig) kinds() (all []observe.Kind) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, e := range r.events {
		if e.Kind != observe.Received && e.Kind != observe.Started {
			all = append(all, e.Kind)
		}
	}
	slices.Sort(all)
	return all
}

// ops counts the requests that were sent, by operation.
func (r *rig) ops() map[string]int {
	n := map[string]int{}
	for _, q := range r.service.Log() {
		n[q.Op]++
	}
	return n
}

// tally counts how often something was done per key.
type tally struct {
	mu sync.Mutex
	n  map[string]int
}

func (c *tally) add(key string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.n == nil {
		c.n = map[string]int{}
	}
	c.n[key]++
}

// effect is what a handler leaves in the table.
type effect struct {
	N int `json:"n"`
}

// applied is how often the effect of a key was applied.
func (r *rig) applied(key string) int {
	v, err := optimistic.Read(context.Background(), tables.NewEntity[effect](r.service.Table("effects"), "p", "effect-"+key), nil)
	if err != nil {
		return 0
	}
	return v.Value.N
}

// upsertEffect is an effect that reads nothing.
func upsertEffect(m *Message) func(context.Context, *tables.Tx) error {
	return func(_ context.Context, tx *tables.Tx) error { return tx.Upsert("effect-"+m.Key, effect{1}) }
}

func pollEvery(d time.Duration) retry.Backoff { return retry.Backoff{Base: d, Cap: d} }

type optimisticTx = tables.Tx

// pass lets the bubble's time pass.
func pass(d time.Duration) { bubble.Sleep(d) }

// withoutMarkers sets DedupeNone in options without Markers.
func withoutMarkers(o ConsumerOptions) ConsumerOptions {
	if o.Markers == nil && o.Dedupe == "" {
		o.Dedupe = DedupeNone
	}
	return o
}

// meter counts the runs of a handler, and how many ran at a time.
type meter struct {
	mu                  sync.Mutex
	running, most, runs int
}

// handler takes some time, or until its context ends, after it has begun.
func (m *meter) handler(takes time.Duration, begun func()) Handler {
	return func(ctx context.Context, _ *Message) error {
		m.mu.Lock()
		m.running++
		m.runs++
		m.most = max(m.most, m.running)
		m.mu.Unlock()
		begun()
		select {
		case <-ctx.Done():
		case <-time.After(takes):
		}
		m.mu.Lock()
		defer m.mu.Unlock()
		m.running--
		return ctx.Err()
	}
}

// note writes one marker, as another consumer would.
func (k *Markers) note(ctx context.Context, queue, key string, m markers.Marker) error {
	return k.failed(k.table.Submit(ctx, markers.PartitionOf(queue, key), aztables.TransactionTypeInsertReplace, []markers.Write{{Row: markers.RowOf(key), Marker: m}}))
}
