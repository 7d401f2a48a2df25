package idempotent

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore/to"
	"github.com/Azure/azure-sdk-for-go/sdk/storage/azqueue/v2"

	"github.com/azconc/azconc/idempotent/internal/format"
	"github.com/azconc/azconc/optimistic/tables"
	"github.com/azconc/azconc/pkg/aztest"
	"github.com/azconc/azconc/pkg/aztest/outages"
)

// withOutbox gives the inbox of a process a queue to send to.
func (p *process) withOutbox() *process {
	p.r.t.Helper()
	p.r.service.Queue("shipments")
	producer, err := NewProducer(p.r.client("shipments", p.wire), nil)
	if err != nil {
		p.r.t.Fatal(err)
	}
	if p.inbox, err = NewInbox(p.r.table("effects", p.wire), &InboxOptions{KeepExpired: true, Outbox: map[string]*Producer{"shipments": producer}}); err != nil {
		p.r.t.Fatal(err)
	}
	return p
}

// apply counts the effect of a message, and has n messages follow from it.
func (p *process) apply(ctx context.Context, m *Message, n int) error {
	return p.inbox.Apply(ctx, m, "p", func(ctx context.Context, tx *tables.Tx) error {
		for i := range n {
			if err := p.inbox.Send(ctx, tx, "shipments", Outgoing{Body: fmt.Appendf(nil, "%s.%d", m.Key, i)}); err != nil {
				return err
			}
		}
		return incrementEffect(m)(ctx, tx)
	})
}

// shipped takes all messages out of the queue to which others are sent, and returns how often each body is there, and how many
// ids it has.
func (r *rig) shipped() (times map[string]int, ids map[string]map[string]bool) {
	r.t.Helper()
	times, ids = map[string]int{}, map[string]map[string]bool{}
	for {
		got, err := r.service.Queue("shipments").DequeueMessages(context.Background(), &azqueue.DequeueMessagesOptions{NumberOfMessages: to.Ptr(int32(32)), VisibilityTimeout: to.Ptr(int32(6 * 3600))})
		if err != nil {
			r.t.Fatal(err)
		}
		if len(got.Messages) == 0 {
			return times, ids
		}
		for _, m := range got.Messages {
			e := format.Detect(*m.MessageText)
			body := string(e.Body)
			if times[body]++; ids[body] == nil {
				ids[body] = map[string]bool{}
			}
			ids[body][e.ID] = true
		}
	}
}

// judgeOutbox holds the effects and what followed against what should be: one effect for each key, and of each message that follows
// at least one, all with one id, which no other has.
func (r *rig) judgeOutbox(follow map[string]int) (copies int) {
	r.t.Helper()
	times, ids := r.shipped()
	owner := map[string]string{}
	for key, n := range follow {
		if got := r.applied(key); got != 1 {
			r.t.Errorf("%s had %d effects", key, got)
		}
		for i := range n {
			body := fmt.Sprintf("%s.%d", key, i)
			if len(ids[body]) != 1 {
				r.t.Errorf("%s was sent %d times, under the ids %v", body, times[body], slices.Collect(maps.Keys(ids[body])))
			}
			for id := range ids[body] {
				if other, taken := owner[id]; taken {
					r.t.Errorf("%s and %s have the id %s", body, other, id)
				}
				owner[id] = body
			}
			copies += times[body] - 1
			delete(times, body)
		}
	}
	if len(times) > 0 {
		r.t.Errorf("nothing has caused %v", times)
	}
	return copies
}

// outboxRowsLeft is how many messages are stored.
func (r *rig) outboxRowsLeft() (n int) {
	r.t.Helper()
	for pages := r.service.Table("effects").NewListEntitiesPager(nil); pages.More(); {
		page, err := pages.NextPage(context.Background())
		if err != nil {
			r.t.Fatal(err)
		}
		for _, raw := range page.Entities {
			if strings.Contains(string(raw), `"to":"shipments"`) {
				n++
			}
		}
	}
	return n
}

// A message without one that follows costs as much as ever; those that follow cost one request each, and one.
func TestRequestsOfAnOutbox(t *testing.T) {
	for n, want := range map[int]map[string]int{
		0: {"Query Entities": 1, "Entity Group Transaction": 1}, // the row of the effect is read
		1: {"Query Entities": 1, "Entity Group Transaction": 2, "Put Message": 1},
		5: {"Query Entities": 1, "Entity Group Transaction": 2, "Put Message": 5},
	} {
		inBubble(t, func(t *testing.T, r *rig) {
			p := r.process().withOutbox()
			apply := func() error {
				m := &Message{ID: "1", Key: "m", Queue: "orders", Expires: time.Now().Add(time.Hour)}
				return p.inbox.Apply(t.Context(), m, "p", func(ctx context.Context, tx *tables.Tx) error {
					for i := range n {
						if err := p.inbox.Send(ctx, tx, "shipments", Outgoing{Body: fmt.Appendf(nil, "m.%d", i)}); err != nil {
							return err
						}
					}
					return tx.Upsert("effect-m", effect{1})
				})
			}
			r.service.Reset()
			if err := apply(); err != nil || !maps.Equal(r.ops(), want) {
				t.Errorf("%d follow: %v, %v", n, err, r.ops())
			}
			r.service.Reset()
			again := map[string]int{"Entity Group Transaction": 1, "Query Entities": 3} // without TLS one of them confirms the conflict
			if err := apply(); !errors.Is(err, ErrAlreadyApplied) || !maps.Equal(r.ops(), again) {
				t.Errorf("%d follow, again: %v, %v", n, err, r.ops())
			}
			if copies := r.judgeOutbox(map[string]int{"m": n}); copies != 0 || r.outboxRowsLeft() != 0 {
				t.Errorf("%d copies, %d rows left", copies, r.outboxRowsLeft())
			}
		})
	}
}

// consumeOutbox has a process handle the queue until until says so. From message k follow k's last digit modulo 3.
func (p *process) consumeOutbox(until func() bool) {
	p.r.t.Helper()
	c, err := NewConsumer(p.queue, func(ctx context.Context, m *Message) error {
		pass(100 * time.Millisecond)
		return p.apply(ctx, m, followers(m.Key))
	}, &ConsumerOptions{
		Dedupe: DedupeInbox, Concurrency: 4, Poison: p.poison, Visibility: 10 * time.Second, SoftStop: time.Second, HardStop: time.Second,
		MaxAttempts: -1, MaxDeliveries: -1, Backoff: pollEvery(time.Second), Poll: pollEvery(time.Second),
	})
	if err != nil {
		p.r.t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	var all sync.WaitGroup
	all.Go(func() { _ = c.Run(ctx) })
	for n := 0; n < 600 && !until(); n++ {
		pass(time.Second)
	}
	cancel()
	all.Wait()
}

func followers(key string) int { return int(key[len(key)-1]-'0') % 3 }

func (r *rig) queueIsEmpty() bool { return len(r.left(r.queue)) == 0 }

// Every request of the cycle of a message from which two follow fails in turn, in each way.
func TestEveryFaultAtEveryRequestOfAnOutbox(t *testing.T) {
	for name, fault := range map[string]aztest.Fault{
		"not sent":      {Kind: aztest.LoseRequest},
		"answer lost":   {Kind: aztest.LoseAnswer},
		"503":           {Kind: aztest.Throttle},
		"500 after all": {Kind: aztest.FailAfterCommit},
		"a page":        {Kind: aztest.Page, Status: 502},
		"hangs":         {Kind: aztest.Hang, Delay: 20 * time.Second},
	} {
		for k := range 9 {
			t.Run(fmt.Sprintf("%s/%d", name, k), func(t *testing.T) {
				inBubble(t, func(t *testing.T, r *rig) {
					r.send("m2")
					p := r.process().withOutbox()
					fault.Skip, fault.Count = k, 1
					p.wire.SetFaults(fault)
					p.consumeOutbox(r.queueIsEmpty)
					if !r.queueIsEmpty() || len(r.buried()) > 0 {
						t.Errorf("%d left, %d poison", len(r.left(r.queue)), len(r.buried()))
					}
					r.judgeOutbox(map[string]int{"m2": 2})
				})
			})
		}
	}
}

// A process loses its connections at any request, before or after that is carried out, and another goes on.
func TestAProcessThatDiesAtAnyRequestOfAnOutboxLosesNothingThatFollows(t *testing.T) {
	for _, after := range []bool{false, true} {
		for k := range 9 {
			t.Run(fmt.Sprintf("%v/%d", after, k), func(t *testing.T) {
				inBubble(t, func(t *testing.T, r *rig) {
					r.send("m2")
					dying := r.process().withOutbox()
					cut := []aztest.Fault{{Kind: aztest.LoseRequest, Skip: k}}
					if after {
						cut = []aztest.Fault{{Kind: aztest.LoseAnswer, Skip: k, Count: 1}, {Kind: aztest.LoseRequest, Skip: k}}
					}
					dying.wire.SetFaults(cut...)
					died := 0
					dying.consumeOutbox(func() bool { died++; return died > 15 })
					r.process().withOutbox().consumeOutbox(r.queueIsEmpty)
					if !r.queueIsEmpty() {
						t.Errorf("%d left", len(r.left(r.queue)))
					}
					if copies := r.judgeOutbox(map[string]int{"m2": 2}); copies > 2 || r.outboxRowsLeft() > 0 {
						t.Errorf("%d copies, %d rows left", copies, r.outboxRowsLeft())
					}
				})
			})
		}
	}
}

// An outage of the table or of either queue, from any request on, neither loses nor doubles what follows, and uses up no attempt.
func TestAnOutageOfAnOutboxLosesNothingThatFollows(t *testing.T) {
	outages.Each(t, func(t *testing.T, o *outages.Outage) {
		r := newRig(t)
		p := r.process().withOutbox()
		r.send("m0", "m2")
		p.wire.SetFaults(o.Fault())
		c, err := NewConsumer(p.queue, func(ctx context.Context, m *Message) error { return p.apply(ctx, m, followers(m.Key)) },
			&ConsumerOptions{Dedupe: DedupeInbox, Concurrency: 2, Poison: p.poison, MaxAttempts: 2, Visibility: 45 * time.Second})
		if err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithCancel(context.Background())
		ended := make(chan error, 1)
		go func() { ended <- c.Run(ctx) }()
		for n := 0; n < 600 && !r.queueIsEmpty(); n++ {
			pass(time.Second)
		}
		cancel()
		if err := <-ended; err != nil || !r.queueIsEmpty() || len(r.buried()) > 0 {
			t.Errorf("Run: %v, %d left, %d poison", err, len(r.left(r.queue)), len(r.buried()))
		}
		r.judgeOutbox(map[string]int{"m0": 0, "m2": 2})
	})
}

// What cannot be stored or sent is refused before a request, and named with the way out.
func TestAnOutboxRefusesWhatItCannotSendBeforeAnyRequest(t *testing.T) {
	inBubble(t, func(t *testing.T, r *rig) {
		p := r.process().withOutbox()
		m := &Message{ID: "1", Key: "m", Queue: "orders"}
		r.service.Reset()
		for want, change := range map[string]func(ctx context.Context, tx *tables.Tx) error{
			"store the body in a blob": func(ctx context.Context, tx *tables.Tx) error {
				return p.inbox.Send(ctx, tx, "shipments", Outgoing{Body: noise(60_000)})
			},
			`no Producer "invoices"`: func(ctx context.Context, tx *tables.Tx) error {
				return p.inbox.Send(ctx, tx, "invoices", Outgoing{})
			},
			"outside of Apply": func(_ context.Context, tx *tables.Tx) error {
				return p.inbox.Send(t.Context(), tx, "shipments", Outgoing{})
			},
			"Outgoing.Delay": func(ctx context.Context, tx *tables.Tx) error {
				return p.inbox.Send(ctx, tx, "shipments", Outgoing{Delay: -1})
			},
			"101 entities": func(ctx context.Context, tx *tables.Tx) (err error) {
				for range 100 {
					err = errors.Join(err, p.inbox.Send(ctx, tx, "shipments", Outgoing{}))
				}
				return err
			},
			"the service takes 4194304 in a transaction": func(ctx context.Context, tx *tables.Tx) (err error) {
				for range 99 {
					err = errors.Join(err, p.inbox.Send(ctx, tx, "shipments", Outgoing{Body: noise(40_000)}))
				}
				return err
			},
		} {
			err := p.inbox.Apply(t.Context(), m, "p", change)
			if err == nil || !strings.Contains(err.Error(), want) {
				t.Errorf("%v, want %s", err, want)
			}
			if large := strings.Contains(want, "blob"); errors.Is(err, ErrTooLarge) != large {
				t.Errorf("ErrTooLarge: %v", err)
			}
		}
		for _, q := range r.service.Log() { // a change that fails may have been applied before
			if q.Op != "Query Entities" {
				t.Errorf("sent: %v", q)
			}
		}
		base64, err := NewProducer(r.queue, &ProducerOptions{Encoding: Base64})
		if err != nil {
			t.Fatal(err)
		}
		for _, bad := range []*Producer{nil, base64} {
			if _, err := NewInbox(r.effects, &InboxOptions{Outbox: map[string]*Producer{"x": bad}}); err == nil {
				t.Errorf("NewInbox takes %v", bad)
			}
		}
	})
}

// A message is poison after its effect was written, because what follows from it names a queue that is no more: redriven, it sends
// what is left, also if its change can no longer run.
func TestWhatIsLeftOfAPoisonMessageIsSentWhenItReturns(t *testing.T) {
	inBubble(t, func(t *testing.T, r *rig) {
		m := &Message{ID: "1", Key: "m2", Queue: "orders", Expires: time.Now().Add(time.Hour)}
		p := r.process().withOutbox()
		p.wire.SetFaults(aztest.Fault{Kind: aztest.Answer, Status: 400, Code: "OutOfRangeInput", Match: aztest.Op("Put Message")})
		err := p.apply(t.Context(), m, 2)
		if _, failed := errors.AsType[*SendError](err); !failed || errors.As(err, new(*outage)) || r.applied("m2") != 1 || r.outboxRowsLeft() != 2 {
			t.Errorf("%v, %d effects, %d rows", err, r.applied("m2"), r.outboxRowsLeft())
		}
		m.ID = "2" // a copy
		without, err := NewInbox(r.table("effects", p.wire), &InboxOptions{Outbox: map[string]*Producer{"others": p.inbox.outbox["shipments"]}})
		if err != nil {
			t.Fatal(err)
		}
		p.wire.SetFaults()
		if err := without.Apply(t.Context(), m, "p", incrementEffect(m)); err == nil || errors.Is(err, ErrAlreadyApplied) || !strings.Contains(err.Error(), `no Producer "shipments"`) {
			t.Errorf("without that producer: %v", err)
		}
		err = p.inbox.Apply(t.Context(), m, "p", func(context.Context, *tables.Tx) error { return errors.New("it is there") })
		if !errors.Is(err, ErrAlreadyApplied) || r.outboxRowsLeft() != 0 {
			t.Errorf("%v, %d rows", err, r.outboxRowsLeft())
		}
		err = p.inbox.Apply(t.Context(), &Message{ID: "3", Key: "m3", Queue: "orders"}, "p", func(context.Context, *tables.Tx) error { return errors.New("it is wrong") })
		if err == nil || errors.Is(err, ErrAlreadyApplied) {
			t.Errorf("a message that was not applied: %v", err)
		}
		if copies := r.judgeOutbox(map[string]int{"m2": 2}); copies != 0 {
			t.Errorf("%d copies", copies)
		}
	})
}

// What was never sent goes with its marker.
func TestGCDeletesWhatAnOutboxHasNeverSent(t *testing.T) {
	inBubble(t, func(t *testing.T, r *rig) {
		p := r.process().withOutbox()
		p.wire.SetFaults(aztest.Fault{Kind: aztest.Refuse, Match: aztest.Op("Put Message")})
		if err := p.apply(t.Context(), &Message{ID: "1", Key: "m2", Queue: "orders"}, 2); !errors.As(err, new(*outage)) {
			t.Errorf("%v", err)
		}
		pass(16 * 24 * time.Hour)
		if n, err := r.inbox.GC(t.Context(), "p"); n != 3 || err != nil || r.outboxRowsLeft() != 0 {
			t.Errorf("GC = %d, %v", n, err)
		}
	})
}
