package idempotent

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/azconc/azconc/pkg/aztest"
	"github.com/azconc/azconc/pkg/observe"
)

var stormSeed = flag.Uint64("seed", 0, "one more seed for the storms")

// TestStorms has three processes handle messages that were sent one to three times, with processes that are killed, stopped,
// cut off and started again, responses that are lost, outages of the table and of the queue, handlers that fail, poison and
// redrive. Each mode keeps its promise: see the table in the README.
func TestStorms(t *testing.T) {
	n, seeds := 400, 2*len(modes)
	if underRace || testing.Short() {
		n, seeds = 50, len(modes)
	}
	var all []uint64
	for i := range seeds {
		all = append(all, uint64(i+1))
	}
	if *stormSeed != 0 {
		all = []uint64{*stormSeed}
	}
	for _, seed := range all {
		m := modes[int(seed)%len(modes)]
		t.Run(fmt.Sprintf("%d %s", seed, m.name), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := newStorm(t, m, seed)
				s.rage(n)
				s.calm()
				if lost, wrong := s.judge(t.Errorf); lost+wrong > 0 {
					t.Errorf("%d lost, %d repeated without a reason", lost, wrong)
				}
				s.leftovers()
			})
		})
	}
}

// storm is one run.
type storm struct {
	*rig
	mode   mode
	claims *ClaimCheck

	mu       sync.Mutex // guards what follows
	rand     *rand.Rand
	copies   map[string]int
	effects  map[string][]done1
	starts   map[string]int // by message id
	outage   []aztest.Fault // of all processes
	alive    map[*crew]bool
	repaired bool
	plant    func(deduper) deduper // a bug
}

// done1 is one effect of a key.
type done1 struct {
	by *crew
	at time.Time
}

// trouble is a time in which what a process does may stay unknown to others.
type trouble struct{ from, to time.Time }

// crew is a process.
type crew struct {
	*process
	s        *storm
	dead     bool // guarded by storm.mu, like the next two
	cut      bool
	troubles []trouble
	stop     context.CancelFunc
	ended    chan struct{}
}

func newStorm(t *testing.T, m mode, seed uint64) *storm {
	s := &storm{rig: newRig(t), mode: m, rand: rand.New(rand.NewPCG(seed, 2)), copies: map[string]int{}, effects: map[string][]done1{}, starts: map[string]int{}, alive: map[*crew]bool{}}
	if _, err := s.service.Container("claims").Create(t.Context(), nil); err != nil {
		t.Fatal(err)
	}
	s.claims = s.rig.claims(s.service)
	return s
}

// roll returns a number in [0, n).
func (s *storm) roll(n int) int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.rand.IntN(n)
}

func (s *storm) between(least, most time.Duration) time.Duration {
	return least + time.Duration(s.roll(int((most-least)/time.Millisecond)))*time.Millisecond
}

// faults gives each wire what it has to suffer. mu is held.
func (s *storm) faults() {
	for c := range s.alive {
		switch {
		case c.dead, c.cut:
			c.wire.SetFaults(aztest.Fault{Kind: aztest.Refuse})
		case s.repaired:
			c.wire.SetFaults()
		default:
			c.wire.SetFaults(append(slices.Clone(s.outage), aztest.Fault{Kind: aztest.LoseAnswer, Probability: 0.01}, aztest.Fault{Kind: aztest.Throttle, Probability: 0.01})...)
		}
	}
}

// begin and end are those of a trouble. mu is held.
func (c *crew) begin() {
	c.troubles = append(c.troubles, trouble{time.Now(), time.Now().Add(1000 * time.Hour)})
}
func (c *crew) end() { c.troubles[len(c.troubles)-1].to = time.Now() }

// start starts a process.
func (s *storm) start() *crew {
	c := &crew{process: s.process(), s: s, ended: make(chan struct{})}
	o := ConsumerOptions{
		Markers: c.markers, Dedupe: s.mode.dedupe, Poison: c.poison, ClaimCheck: s.rig.claims(c.wire), Visibility: 10 * time.Second,
		Backoff: pollEvery(2 * time.Second), Poll: pollEvery(time.Second), SoftStop: 2 * time.Second, HardStop: time.Second,
		Hooks: observe.Hooks{Event: func(_ context.Context, e observe.Event) {
			s.rig.mu.Lock()
			defer s.rig.mu.Unlock()
			s.events = append(s.events, e)
		}},
	}
	make := func() *Consumer {
		consumer, err := NewConsumer(c.queue, c.handle, &o)
		if err != nil {
			s.t.Fatal(err)
		}
		if s.plant != nil {
			consumer.dedupe = s.plant(consumer.dedupe)
		}
		return consumer
	}
	s.mu.Lock()
	s.alive[c] = true
	s.faults()
	s.mu.Unlock()
	ctx, cancel := context.WithCancel(context.Background())
	c.stop = cancel
	go func() {
		defer close(c.ended)
		for make().Run(ctx) != nil && ctx.Err() == nil {
			pass(time.Second)
		}
	}()
	return c
}

// kill ends a process without a word.
func (c *crew) kill() {
	c.s.mu.Lock()
	c.dead = true
	c.begin()
	c.s.faults()
	c.s.mu.Unlock()
	c.stop()
}

// handle is the handler.
func (c *crew) handle(ctx context.Context, m *Message) error {
	s := c.s
	s.mu.Lock()
	s.starts[m.ID]++
	s.mu.Unlock()
	if what := s.roll(100); !s.calmed() {
		switch {
		case what < 5:
			return errors.New("failed")
		case what < 6:
			return Poison(errors.New("broken"))
		case what < 8:
			return Postpone(3 * time.Second)
		case what < 9:
			return RetryAfter(errors.New("at once"), 0)
		}
	}
	timer := time.NewTimer(s.between(0, 3*time.Second))
	if s.roll(50) == 0 {
		timer.Reset(25 * time.Second)
	}
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-ctx.Done():
		return context.Cause(ctx)
	}
	if want := s.body(m.Key); string(m.Body) != want {
		s.t.Errorf("%s: a body of %d bytes, want %d", m.Key, len(m.Body), len(want))
	}
	if s.mode.inbox {
		return c.inbox.Apply(ctx, m, "p", func(ctx context.Context, tx *optimisticTx) error {
			var e effect
			if _, err := tx.Get(ctx, "effect-"+m.Key, &e); err != nil {
				return err
			}
			e.N++
			return tx.Put("effect-"+m.Key, e)
		})
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if c.dead || ctx.Err() != nil {
		return errors.New("dead")
	}
	s.effects[m.Key] = append(s.effects[m.Key], done1{c, time.Now()})
	return nil
}

func (s *storm) calmed() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.repaired
}

// bodyOf is the body of a key: of one in 50 it needs a ClaimCheck.
func bodyOf(key string) string {
	if strings.HasSuffix(key, "07") || strings.HasSuffix(key, "57") {
		return string(noise(70_000))
	}
	return key
}

// body is what is sent under a key. Without Markers, the first copy that is handled takes a body in a blob with it.
func (s *storm) body(key string) string {
	if !s.mode.knowsCopies() {
		return key
	}
	return bodyOf(key)
}

// rage sends n messages, and lets happen to the processes what may happen.
func (s *storm) rage(n int) {
	producer, err := NewProducer(s.queue, &ProducerOptions{ClaimCheck: s.claims})
	if err != nil {
		s.t.Fatal(err)
	}
	over := time.Now().Add(10 * time.Minute)
	var senders sync.WaitGroup
	for i := range n {
		key := fmt.Sprintf("m%05d", i)
		if i%3 == 0 {
			key += strings.Repeat("長", 55) + key[4:]
		}
		for range 1 + s.roll(3) {
			s.copies[key]++
			wait := s.between(0, 9*time.Minute)
			if s.roll(2) == 0 { // beside the first
				wait = time.Duration(i) * 500 * time.Millisecond
			}
			senders.Go(func() {
				pass(wait)
				if _, err := producer.Send(context.Background(), Outgoing{ID: key, Body: []byte(s.body(key))}); err != nil {
					s.t.Error(err)
				}
			})
		}
	}
	crews := []*crew{s.start(), s.start(), s.start()}
	for time.Now().Before(over) {
		pass(s.between(2*time.Second, 20*time.Second))
		i := s.roll(len(crews))
		c := crews[i]
		switch s.roll(8) {
		case 0, 1, 2:
			c.kill()
			crews[i] = s.start()
		case 3, 4:
			c.stop()
			<-c.ended
			crews[i] = s.start()
		case 5:
			s.cut(c, true)
			pass(s.between(5*time.Second, 25*time.Second))
			s.cut(c, false)
		case 6:
			s.suffer(aztest.Fault{Kind: aztest.Throttle, Match: ofTables}, s.between(20*time.Second, time.Minute))
		case 7:
			s.suffer(aztest.Fault{Kind: aztest.Refuse, Match: ofQueues}, s.between(5*time.Second, 30*time.Second))
		}
	}
	senders.Wait()
	s.mu.Lock()
	s.repaired, s.outage = true, nil
	s.faults()
	s.mu.Unlock()
}

func (s *storm) cut(c *crew, off bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if c.cut = off; off {
		c.begin()
	} else {
		c.end()
	}
	s.faults()
}

// suffer is an outage for all.
func (s *storm) suffer(f aztest.Fault, d time.Duration) {
	note := func(faults ...aztest.Fault) {
		s.mu.Lock()
		defer s.mu.Unlock()
		s.outage = faults
		for c := range s.alive {
			switch {
			case c.dead:
			case len(faults) > 0:
				c.begin()
			default:
				c.end()
			}
		}
		s.faults()
	}
	note(f)
	pass(d)
	note()
}

func ofTables(r *aztest.Request) bool {
	return strings.Contains(r.Op, "Entit") || strings.Contains(r.Op, "Table")
}
func ofQueues(r *aztest.Request) bool { return strings.Contains(r.Op, "Message") }
