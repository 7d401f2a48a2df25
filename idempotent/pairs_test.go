package idempotent

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/azconc/azconc/idempotent/redrive"
	"github.com/azconc/azconc/pkg/aztest"
	"github.com/azconc/azconc/pkg/aztest/outages"
)

// pairing is a message and a consumer that are made of features, and what the model expects of them.
type pairing struct {
	has  []string
	mode mode
}

func (p pairing) with(feature string) bool { return slices.Contains(p.has, feature) }

// applies reports whether the effect is in the table of an inbox.
func (p pairing) applies() bool { return p.with("inbox") || p.with("outbox") }

// features are what is tried in pairs. The exclusive ones of one group cannot be combined.
var features = []struct{ name, group string }{
	{"markers", "dedupe"}, {"results", "dedupe"}, {"inbox", "apply"}, {"outbox", "apply"}, {"large body", "body"}, {"text", "body"},
	{"copy", ""}, {"fails once", "outcome"}, {"poison", "outcome"}, {"budget", ""}, {"a process that died", ""},
	{"redriven", ""}, {"other options before", "other"}, {"other options beside", "other"}, {"queue made again", "again"}, {"table made again", "again"},
}

// pairings are all features alone and in pairs.
func pairings() (all []pairing) {
	for i, a := range features {
		if a.name != "table made again" {
			all = append(all, pairing{has: []string{a.name}})
		}
		for _, b := range features[i+1:] {
			one := pairing{has: []string{a.name, b.name}}
			if a.group != "" && a.group == b.group || one.with("text") && (one.applies() || one.with("copy")) || // a text has no id
				one.with("table made again") && a.group != "dedupe" { // the table of the markers
				continue
			}
			all = append(all, one)
		}
	}
	return all
}

// run sends and consumes the message while the consumer meets a fault, and reports whether it did.
func (p pairing) run(t *testing.T, r *rig, k *ClaimCheck, fault aztest.Fault) (met bool) {
	switch {
	case p.with("markers"):
		p.mode.dedupe = DedupeOwner
	case p.with("results"):
		p.mode.dedupe = DedupeComplete
	default:
		p.mode.dedupe = DedupeNone
	}
	copies, body := 1, []byte("m")
	if p.with("copy") || p.with("table made again") || p.mode.knowsCopies() && (p.with("other options before") || p.with("other options beside")) {
		copies = 2
	}
	if p.with("large body") {
		body = noise(70_000)
	}
	for range copies {
		if p.with("text") {
			r.sendAs(Text, "m")
		} else {
			r.sendBody(k, "m", body)
		}
	}
	if p.with("a process that died") {
		r.receiveAndDie(1, 3*time.Second)
		pass(4 * time.Second)
	}
	if p.with("redriven") {
		p.bury(r)
	}
	if p.with("other options before") {
		r.killedWhileHandling(func(ctx context.Context, _ *Message) error { <-ctx.Done(); return ctx.Err() }, 4*time.Second, p.others(r, r.process()))
	}
	proc := r.process().withOutbox()
	proc.wire.SetFaults(fault)
	if p.with("redriven") {
		p.redrive(t, proc)
	}
	o := ConsumerOptions{
		Markers: proc.markers, Dedupe: p.mode.dedupe, Poison: proc.poison, ClaimCheck: r.claims(proc.wire), Applied: proc.inbox.appliedIn("p"),
		Visibility: 10 * time.Second, Backoff: pollEvery(time.Second), Poll: pollEvery(3 * time.Second), Concurrency: 4,
		CreateQueue: p.with("queue made again"),
	}
	if p.with("budget") {
		o.Concurrency, o.Budget = 0, NewBudget(2)
	}
	var lock sync.Mutex
	runs, effects, again := 0, 0, 0
	handle := func(ctx context.Context, m *Message) error {
		if string(m.Body) == "again" {
			lock.Lock()
			defer lock.Unlock()
			again++
			return nil
		}
		pass(8 * time.Second) // long enough for a renewal
		lock.Lock()
		runs++
		first := runs == 1
		lock.Unlock()
		switch {
		case !p.with("text") && !bytes.Equal(m.Body, body):
			t.Errorf("a body of %d bytes, want %d", len(m.Body), len(body))
		case p.with("poison"):
			return Poison(errors.New("broken"))
		case p.with("fails once") && first:
			return errors.New("once")
		case p.with("outbox"):
			return proc.apply(ctx, m, 1)
		case p.with("inbox"):
			return proc.inbox.Apply(ctx, m, "p", func(ctx context.Context, tx *optimisticTx) error {
				var e effect
				there, err := tx.Get(ctx, "effect-"+m.Key, &e)
				if e.N++; there && err == nil {
					return tx.Update("effect-"+m.Key, e)
				}
				return errors.Join(err, tx.Insert("effect-"+m.Key, e))
			})
		case ctx.Err() != nil:
			return ctx.Err()
		}
		lock.Lock()
		effects++
		lock.Unlock()
		return nil
	}
	ctx, cancel := context.WithCancel(t.Context())
	var all sync.WaitGroup
	start := func(proc *process, o ConsumerOptions) {
		c, err := NewConsumer(proc.queue, handle, &o)
		if err != nil {
			t.Fatal(err)
		}
		all.Go(func() {
			if err := c.Run(ctx); err != nil {
				t.Errorf("Run: %v", err)
			}
		})
	}
	start(proc, o)
	if p.with("other options beside") {
		other := r.process()
		start(other, p.others(r, other))
	}
	if p.with("queue made again") || p.with("table made again") {
		p.makeAgain(r)
	}
	for n := 0; n < 300 && len(r.left(r.queue)) > 0; n++ {
		pass(2 * time.Second)
	}
	pass(5 * time.Second)
	cancel()
	all.Wait()
	if p.applies() {
		effects = r.applied("m")
	}
	if p.with("outbox") {
		sent := map[string]int{"m": 1}
		if p.with("poison") || effects == 0 {
			sent = nil
		}
		r.judgeOutbox(sent)
	}
	repeats := 1
	if fault.Kind == aztest.Refuse {
		repeats = copies
	}
	if mostAgain := 1 + repeats; p.with("queue made again") && (again < 1 || again > mostAgain || p.mode.knowsCopies() && again > 1) {
		t.Errorf("what was sent to the new queue was handled %d times", again)
	}
	p.judge(t, copies, repeats, effects, len(r.buried()), len(r.left(r.queue)))
	return proc.wire.Met()[fault.Kind] > 0
}

// judge is the model: nothing is left, nothing is lost, a copy is known where something remembers it, and what is poison has no effect. A
// lost answer may repeat one delivery, or one burial, and an outage that of each copy.
func (p pairing) judge(t *testing.T, copies, repeats, effects, buried, left int) {
	t.Helper()
	least, most := copies, copies+repeats
	if p.applies() || p.mode.knowsCopies() && !p.with("table made again") {
		least, most = 1, 1
	}
	if p.with("other options beside") || p.with("table made again") {
		least = 1 // one of them knows copies; what the table knew is gone, and what is written then is known again
	}
	if p.with("large body") && !p.mode.knowsCopies() {
		least = 1 // the body went with the first copy; the second is poison, or was applied
	}
	mostBuried := 0
	switch {
	case p.with("poison"):
		least, most, mostBuried = 0, 0, copies+repeats
	case p.with("large body") && (!p.mode.knowsCopies() || p.with("table made again")):
		mostBuried = copies
	}
	if p.with("queue made again") {
		least = 0 // it went with the queue
	}
	if left != 0 || effects < least || effects > most || buried > mostBuried || p.with("poison") && buried == 0 && !p.with("queue made again") {
		t.Errorf("%d effects, want %d to %d; %d buried, want up to %d; %d left", effects, least, most, buried, mostBuried, left)
	}
}

// appliedIn is Applied for a partition.
func (i *Inbox) appliedIn(partition string) func(context.Context, *Message) (bool, error) {
	return func(ctx context.Context, m *Message) (bool, error) { return i.Applied(ctx, m, partition) }
}

// TestOptionsInPairsAndALostAnswerAtEachRequest: each request of a feature alone, and of two every second, another one in each pair. An outage of
// three seconds begins with every third of these requests, too. With -short it is a sixth of them, with the race detector of every sixth pair.
func TestOptionsInPairsAndALostAnswerAtEachRequest(t *testing.T) {
	cases, least := 0, 1200
	if testing.Short() {
		least = 250
	}
	if underRace {
		least = 15
	}
	for i, p := range pairings() {
		step := len(p.has)
		if testing.Short() {
			step *= 6
		}
		if underRace && i%6 > 0 {
			continue
		}
		for n, met := i%step, true; met && n < 40; n += step {
			t.Run(fmt.Sprintf("%v/%d", p.has, n), func(t *testing.T) {
				inClaimBubble(t, func(t *testing.T, r *rig, k *ClaimCheck) {
					met = p.run(t, r, k, aztest.Fault{Kind: aztest.LoseAnswer, Skip: n, Count: 1})
				})
			})
			if cases++; met && (i+n/step)%3 == 0 {
				t.Run(fmt.Sprintf("%v/outage from %d on", p.has, n), func(t *testing.T) {
					inClaimBubble(t, func(t *testing.T, r *rig, k *ClaimCheck) {
						p.run(t, r, k, (&outages.Outage{Kind: aztest.Refuse, Lasts: 3 * time.Second, At: n + 1}).Fault())
					})
				})
				cases++
			}
		}
	}
	if t.Logf("%d cases", cases); cases < least {
		t.Errorf("%d cases: the test tests too little", cases)
	}
}

// A bound of -1 was none for some options, and refused by others.
func TestANegativeBoundIsNone(t *testing.T) {
	inBubble(t, func(t *testing.T, r *rig) {
		r.send("m")
		c := r.consumer(func(context.Context, *Message) error { return Poison(errors.New("broken")) },
			ConsumerOptions{Poison: r.poison, MaxMessages: -1, MaxAttempts: -1, MaxDeliveries: -1, ExitWhenEmpty: true})
		if err := c.Run(t.Context()); err != nil {
			t.Fatal(err)
		}
		if res, err := redrive.Run(t.Context(), r.poison, r.queue, &redrive.Options{Max: -1}); err != nil || res.Moved != 1 {
			t.Errorf("%+v, %v", res, err)
		}
	})
}
