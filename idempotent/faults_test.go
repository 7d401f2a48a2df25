package idempotent

import (
	"context"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore/policy"
	"github.com/Azure/azure-sdk-for-go/sdk/data/aztables"
	"github.com/Azure/azure-sdk-for-go/sdk/storage/azqueue/v2"

	"github.com/azconc/azconc/pkg/aztest"
	"github.com/azconc/azconc/pkg/observe"
)

// process is a consumer with connections of its own, which can be cut.
type process struct {
	r       *rig
	wire    *aztest.Injector
	queue   *azqueue.QueueClient
	poison  *azqueue.QueueClient
	markers *Markers
	inbox   *Inbox
}

func (r *rig) process() *process {
	r.t.Helper()
	p := &process{r: r, wire: aztest.Inject(r.service, 1)}
	p.queue, p.poison = r.client("orders", p.wire), r.client("orders-poison", p.wire)
	p.markers = r.markersOver(p.wire)
	var err error
	if p.inbox, err = NewInbox(r.table("effects", p.wire), &InboxOptions{KeepExpired: true}); err != nil {
		r.t.Fatal(err)
	}
	return p
}

func (r *rig) table(name string, transport policy.Transporter) *aztables.Client {
	r.t.Helper()
	credential, err := aztables.NewSharedKeyCredential(aztest.Account, aztest.Key)
	if err != nil {
		r.t.Fatal(err)
	}
	client, err := aztables.NewClientWithSharedKey(r.service.TableURL()+"/"+name, credential, &aztables.ClientOptions{ClientOptions: policy.ClientOptions{Transport: transport, PerRetryPolicies: []policy.Policy{Policy()}}})
	if err != nil {
		r.t.Fatal(err)
	}
	return client
}

// markersOver are the markers of a process whose requests take this way.
func (r *rig) markersOver(transport policy.Transporter) *Markers {
	r.t.Helper()
	k, err := NewMarkers(r.table("markers", transport), nil)
	if err != nil {
		r.t.Fatal(err)
	}
	return k
}

// mode is a way to consume.
type mode struct {
	name   string
	dedupe Dedupe
	inbox  bool
	most   int // effects of one message after one fault
}

var modes = []mode{
	{"nothing", DedupeNone, false, 2}, {"markers", DedupeOwner, false, 2},
	{"results", DedupeComplete, false, 2}, {"inbox", DedupeNone, true, 1}, {"markers and inbox", DedupeOwner, true, 1},
}

// knowsCopies: the consumer tells the copies of a message from other messages.
func (m mode) knowsCopies() bool { return m.dedupe == DedupeOwner || m.dedupe == DedupeComplete }

// consume runs a consumer of this process until until says so.
func (p *process) consume(m mode, effects *tally, o ConsumerOptions, until func() bool) {
	p.r.t.Helper()
	o.Markers, o.Dedupe = p.markers, m.dedupe
	o.Poison, o.Visibility, o.SoftStop, o.HardStop = p.poison, 10*time.Second, time.Second, time.Second
	o.Backoff, o.Poll = pollEvery(time.Second), pollEvery(time.Second)
	c, err := NewConsumer(p.queue, func(ctx context.Context, msg *Message) error {
		pass(8 * time.Second) // long enough for a renewal
		if m.inbox {
			return p.inbox.Apply(ctx, msg, "p", func(ctx context.Context, tx *optimisticTx) error {
				var e effect
				there, err := tx.Get(ctx, "effect-"+msg.Key, &e)
				if err != nil {
					return err
				}
				e.N++
				if there {
					return tx.Update("effect-"+msg.Key, e)
				}
				return tx.Insert("effect-"+msg.Key, e)
			})
		}
		if ctx.Err() != nil {
			return ctx.Err()
		}
		effects.add(msg.Key)
		return nil
	}, &o)
	if err != nil {
		p.r.t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	var all sync.WaitGroup
	all.Go(func() { _ = c.Run(ctx) })
	for n := 0; n < 300 && !until(); n++ {
		pass(time.Second)
	}
	cancel()
	all.Wait()
	pass(time.Minute) // requests that are still being retried give up
}

// count is how often the effect of a key has happened.
func (m mode) count(r *rig, effects *tally, key string) int {
	if m.inbox {
		return r.applied(key)
	}
	effects.mu.Lock()
	defer effects.mu.Unlock()
	return effects.n[key]
}

// TestEveryFaultAtEveryRequestOfACycle breaks one request of the cycle of one message, each in turn, in each way.
func TestEveryFaultAtEveryRequestOfACycle(t *testing.T) {
	lost := func(r *aztest.Request) bool { return r.Op == "Delete Message" || r.Op == "Update Message" }
	faults := map[string]aztest.Fault{
		"not sent":      {Kind: aztest.LoseRequest},
		"answer lost":   {Kind: aztest.LoseAnswer},
		"503":           {Kind: aztest.Throttle},
		"500 after all": {Kind: aztest.FailAfterCommit},
		"404":           {Kind: aztest.Answer, Status: 404, Code: "MessageNotFound", Match: lost},
		"hangs":         {Kind: aztest.Hang, Delay: 20 * time.Second},
	}
	for _, m := range modes {
		for name, fault := range faults {
			for k := range 8 {
				if testing.Short() && (k+len(name)+len(m.name))%2 > 0 {
					continue
				}
				t.Run(fmt.Sprintf("%s/%s/%d", m.name, name, k), func(t *testing.T) {
					inBubble(t, func(t *testing.T, r *rig) {
						r.send("m")
						var effects tally
						fault.Skip, fault.Count = k, 1
						p := r.process()
						p.wire.SetFaults(fault)
						p.consume(m, &effects, ConsumerOptions{MaxAttempts: -1}, func() bool { return len(r.left(r.queue)) == 0 })
						if n := m.count(r, &effects, "m"); n < 1 || n > m.most {
							t.Errorf("%d effects, want 1 to %d:\n%v", n, m.most, p.wire.Log())
						}
						if left, buried := len(r.left(r.queue)), len(r.buried()); left+buried != 0 {
							t.Errorf("%d messages left, %d buried", left, buried)
						}
					})
				})
			}
		}
	}
}

// TestAProcessThatDiesAtAnyRequestLosesNothing cuts all connections from the k-th request on, before or after that one is
// carried out, and lets another process go on.
func TestAProcessThatDiesAtAnyRequestLosesNothing(t *testing.T) {
	for _, m := range modes {
		for _, after := range []bool{false, true} {
			for k := range 8 {
				t.Run(fmt.Sprintf("%s/%v/%d", m.name, after, k), func(t *testing.T) {
					inBubble(t, func(t *testing.T, r *rig) {
						r.send("m")
						var effects tally
						dying := r.process()
						cut := []aztest.Fault{{Kind: aztest.LoseRequest, Skip: k}}
						if after {
							cut = []aztest.Fault{{Kind: aztest.LoseAnswer, Skip: k, Count: 1}, {Kind: aztest.LoseRequest, Skip: k}}
						}
						dying.wire.SetFaults(cut...)
						died := 0
						dying.consume(m, &effects, ConsumerOptions{MaxAttempts: -1}, func() bool { died++; return died > 15 })
						next := r.process()
						next.consume(m, &effects, ConsumerOptions{MaxAttempts: -1}, func() bool { return len(r.left(r.queue)) == 0 })
						if n := m.count(r, &effects, "m"); n < 1 || n > m.most {
							t.Errorf("%d effects, want 1 to %d:\n%v\n%v", n, m.most, dying.wire.Log(), next.wire.Log())
						}
						if left := len(r.left(r.queue)); left != 0 {
							t.Errorf("%d messages left", left)
						}
					})
				})
			}
		}
	}
}

// TestAMessageIsNotSettledWhileItsHeartbeatIsUnderWay has handlers end at the moment of a renewal whose response is slow. A
// settlement at that time would use a pop receipt that the renewal has made invalid, or the renewal would hide again what
// was put back.
func TestAMessageIsNotSettledWhileItsHeartbeatIsUnderWay(t *testing.T) {
	for ms := range 20 {
		inBubble(t, func(t *testing.T, r *rig) {
			r.send("m")
			p := r.process()
			p.wire.SetFaults(aztest.Fault{Kind: aztest.Slow, Delay: 500 * time.Millisecond, Match: aztest.Op("Update Message")})
			runs := 0
			c, err := NewConsumer(p.queue, func(context.Context, *Message) error {
				if runs++; runs > 1 {
					return nil
				}
				pass(19500*time.Millisecond + time.Duration(ms)*50*time.Millisecond)
				return RetryAfter(fmt.Errorf("later"), time.Second)
			}, &ConsumerOptions{Dedupe: DedupeNone, Visibility: 30 * time.Second, Poll: pollEvery(time.Second), Hooks: observe.Hooks{Event: func(_ context.Context, e observe.Event) {
				if e.Kind == observe.Failed {
					t.Errorf("%d ms: %v", 50*ms, e.Err)
				}
			}}})
			if err != nil {
				t.Fatal(err)
			}
			ctx, cancel := context.WithCancel(context.Background())
			var all sync.WaitGroup
			all.Go(func() { _ = c.Run(ctx) })
			began := time.Now()
			for n := 0; n < 100 && len(r.left(r.queue)) > 0; n++ {
				pass(time.Second)
			}
			if took := time.Since(began); took > 40*time.Second { // it was to come back after a second, not after 30
				t.Errorf("%d ms: it took %v", 50*ms, took)
			}
			cancel()
			all.Wait()
		})
	}
}
