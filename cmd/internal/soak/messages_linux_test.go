package soak

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"time"

	"github.com/azconc/azconc/idempotent"
	"github.com/azconc/azconc/idempotent/redrive"
	"github.com/azconc/azconc/optimistic/tables"
	"github.com/azconc/azconc/pkg/retry"
)

const (
	orders       = "orders"
	payments     = "payments"
	poisonSuffix = "-poison"
	parts        = 4 // over so many partitions payments are spread
)

// workMessages sends messages one to three times each, to two queues: orders with
// markers, payments with an inbox. Some handlers fail, some messages become poison and are redriven.
func workMessages(ctx context.Context, w *worker) {
	var all sync.WaitGroup
	for _, q := range queues {
		all.Go(func() { w.consume(ctx, q) })
	}
	all.Go(func() { w.lane("send", 0).send(ctx) })
	all.Go(func() { w.lane("redrive", 0).redrive(ctx) })
	all.Wait()
}

// send sends messages as long as the weather lasts.
func (l *lane) send(ctx context.Context) {
	producers := map[string]*idempotent.Producer{}
	for _, q := range queues {
		p, err := idempotent.NewProducer(l.site.queue(q), nil)
		must(err)
		producers[q] = p
	}
	for i := 0; l.weather.Err() == nil; i++ {
		q, key := queues[l.roll(len(queues))], fmt.Sprintf("%s-%d", l.Process, i)
		n := l.journal.begin(note{Kind: "send", Lane: l.name, Of: q, Text: key})
		out := failed
		for copies := 1 + l.roll(3); copies > 0; copies-- {
			if l.Plant.has(noSend) && l.roll(4) == 0 {
				out = ok
				break
			}
			_, err := producers[q].Send(ctx, idempotent.Outgoing{ID: key, Body: []byte(key), TTL: time.Hour, Delay: time.Duration(l.roll(3)) * time.Second})
			if err == nil {
				out = ok
			}
		}
		l.journal.end(n, out)
		l.rest(ctx, 300*time.Millisecond)
	}
}

// redrive moves poison messages back, also when the weather is over.
func (l *lane) redrive(ctx context.Context) {
	for ctx.Err() == nil {
		for _, q := range queues {
			_, err := redrive.Run(ctx, l.site.queue(q+poisonSuffix), l.site.queue(q), nil)
			l.journal.fact(note{Kind: "redrive", Lane: l.name, Of: q, Out: outcome(err)})
		}
		l.rest(ctx, 3*time.Second)
	}
}

// consume runs one consumer after the other; an outage may end one.
func (w *worker) consume(ctx context.Context, queue string) {
	l := w.lane("consume-"+queue, 0)
	inbox, err := idempotent.NewInbox(w.site.table(payments), nil)
	must(err)
	for ctx.Err() == nil {
		o := &idempotent.ConsumerOptions{
			Concurrency: 4, Visibility: 6 * time.Second, Poison: w.site.queue(queue + poisonSuffix),
			Poll: retry.Backoff{Base: 100 * time.Millisecond, Cap: time.Second}, Backoff: retry.Backoff{Base: 200 * time.Millisecond, Cap: 2 * time.Second},
			SoftStop: 3 * time.Second, HardStop: -1, // over a faulty network, a message is given back for as long as it is hidden
		}
		handler := l.effect
		switch {
		case queue == payments:
			o.Dedupe = idempotent.DedupeInbox
			handler = func(ctx context.Context, m *idempotent.Message) error { return l.pay(ctx, inbox, m) }
		case w.Plant.has(noMarkers):
			o.Dedupe = idempotent.DedupeNone
		default:
			o.Markers, err = idempotent.NewMarkers(w.site.table("markers"), nil)
			must(err)
		}
		c, err := idempotent.NewConsumer(w.site.queue(queue), func(ctx context.Context, m *idempotent.Message) error {
			return l.handle(ctx, queue, m, handler)
		}, o)
		must(err)
		if err := c.Run(ctx); err != nil && ctx.Err() == nil {
			l.journal.fact(note{Kind: "consumer", Lane: l.name, Of: queue, Out: failed, Text: err.Error()})
			l.rest(ctx, time.Second)
		}
	}
}

// handle handles a message: it takes a while, fails now and then, and records until when it was right to work.
func (l *lane) handle(ctx context.Context, queue string, m *idempotent.Message, effect idempotent.Handler) (err error) {
	n := l.journal.begin(note{Kind: "handle", Lane: l.name, Of: queue, Text: m.Key})
	defer func() { l.journal.end(n, outcome(err)) }()
	work := time.Duration(l.roll(100)) * time.Millisecond
	if l.roll(100) == 0 {
		work = 9 * time.Second // longer than a message is hidden
	}
	for until := time.Now().Add(work); ; {
		at := now()
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		n.V = at
		left := time.Until(until)
		if left <= 0 {
			break
		}
		_ = retry.Sleep(ctx, min(left, holdCheck))
	}
	if what := l.roll(100); l.weather.Err() == nil {
		switch {
		case what < 3:
			return errors.New("failed")
		case what < 4:
			return idempotent.Poison(errors.New("broken"))
		case what < 5:
			return idempotent.Postpone(time.Second)
		}
	}
	return effect(ctx, m)
}

// effect is one that only the markers keep from happening twice.
func (l *lane) effect(ctx context.Context, m *idempotent.Message) error {
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	l.journal.fact(note{Kind: "effect", Lane: l.name, Of: m.Queue[strings.LastIndexByte(m.Queue, '/')+1:], Text: m.Key})
	return nil
}

// paid counts the effects of a payment.
type paid struct {
	N int64 `json:"n"`
}

func partOf(key string) string { return fmt.Sprintf("part-%d", hash(key)%parts) }

func (l *lane) pay(ctx context.Context, inbox *idempotent.Inbox, m *idempotent.Message) error {
	return inbox.Apply(ctx, m, partOf(m.Key), func(ctx context.Context, tx *tables.Tx) error {
		return changeRow(ctx, tx, "paid-"+m.Key, func(_ context.Context, p *paid) error { p.N++; return nil })
	})
}
