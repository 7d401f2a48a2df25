package idempotent

import (
	"context"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/azconc/azconc/optimistic/tables"
	"github.com/azconc/azconc/pkg/aztest/outages"
)

// An outage that begins at any request of a consumer neither ends it nor repeats or loses a message.
func TestAnOutageAtAnyRequestOfAConsumerRepeatsAndLosesNothing(t *testing.T) {
	for _, mode := range []mode{{dedupe: DedupeOwner}, {dedupe: DedupeInbox, inbox: true}} {
		t.Run(string(mode.dedupe), func(t *testing.T) {
			t.Parallel()
			outages.Each(t, func(t *testing.T, o *outages.Outage) { newRig(t).consumeInOutage(o, mode) })
		})
	}
}

// consumeInOutage has a consumer handle messages in an outage of its own requests.
func (r *rig) consumeInOutage(outage *outages.Outage, mode mode) {
	t := r.t
	const messages = 4
	for i := range messages {
		r.send(fmt.Sprint("m", i))
	}
	var mu sync.Mutex
	handled := map[string]int{}
	p := r.process()
	p.wire.SetFaults(outage.Fault())
	o := ConsumerOptions{Concurrency: 2, Visibility: 45 * time.Second, Dedupe: mode.dedupe, Markers: p.markers, Poison: p.poison, MaxAttempts: 2, MaxDeliveries: 4}
	c, err := NewConsumer(p.queue, func(ctx context.Context, m *Message) error {
		pass(500 * time.Millisecond)
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		if mode.inbox {
			return p.inbox.Apply(ctx, m, "p", incrementEffect(m))
		}
		mu.Lock()
		defer mu.Unlock()
		handled[m.Key]++
		return nil
	}, &o)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- c.Run(ctx) }()
	left := messages
	for began := time.Now(); left > 0 && time.Since(began) < 10*time.Minute && len(ended) == 0; {
		pass(time.Second)
		left = len(r.left(r.queue))
	}
	cancel()
	err = <-ended
	for i := range messages {
		key := fmt.Sprint("m", i)
		if mode.inbox {
			handled[key] = r.applied(key)
		}
		if handled[key] != 1 {
			t.Errorf("%s had %d effects", key, handled[key])
		}
	}
	if err != nil || left > 0 || len(r.buried()) > 0 {
		t.Errorf("Run: %v, %d messages left, %d poison", err, left, len(r.buried()))
	}
}

// incrementEffect is an effect that shows how often it was applied.
func incrementEffect(m *Message) func(context.Context, *tables.Tx) error {
	return func(ctx context.Context, tx *tables.Tx) error {
		var e effect
		if _, err := tx.Get(ctx, "effect-"+m.Key, &e); err != nil {
			return err
		}
		return tx.Upsert("effect-"+m.Key, effect{e.N + 1})
	}
}
