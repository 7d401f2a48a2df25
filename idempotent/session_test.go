package idempotent

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore/policy"
	"github.com/Azure/azure-sdk-for-go/sdk/storage/azblob/container"
	"github.com/Azure/azure-sdk-for-go/sdk/storage/azblob/lease"

	"github.com/azconc/azconc/pessimistic"
	"github.com/azconc/azconc/pkg/aztest"
)

// inSessionBubble is inBubble with a container for sessions.
func inSessionBubble(t *testing.T, test func(t *testing.T, r *rig)) {
	t.Helper()
	inBubble(t, func(t *testing.T, r *rig) {
		if _, err := r.service.Container("sessions").Create(t.Context(), nil); err != nil {
			t.Fatal(err)
		}
		r.service.Reset()
		test(t, r)
	})
}

func (r *rig) sessions(transport policy.Transporter, o *SessionsOptions) *Sessions {
	r.t.Helper()
	credential, err := container.NewSharedKeyCredential(aztest.Account, aztest.Key)
	if err != nil {
		r.t.Fatal(err)
	}
	client, err := container.NewClientWithSharedKeyCredential(r.service.BlobURL()+"/sessions", credential, &container.ClientOptions{ClientOptions: policy.ClientOptions{Transport: transport}})
	if err != nil {
		r.t.Fatal(err)
	}
	k, err := NewSessions(client, o)
	if err != nil {
		r.t.Fatal(err)
	}
	return k
}

// leased tells for each session's blob whether it is leased.
func (r *rig) leased() map[string]bool {
	r.t.Helper()
	all := map[string]bool{}
	for pages := r.service.Container("sessions").NewListBlobsFlatPager(nil); pages.More(); {
		page, err := pages.NextPage(context.Background())
		if err != nil {
			r.t.Fatal(err)
		}
		for _, b := range page.Segment.BlobItems {
			all[*b.Name] = *b.Properties.LeaseState == lease.StateTypeLeased
		}
	}
	return all
}

// alive is how many sessions are leased.
func (r *rig) alive() (n int) {
	for _, leased := range r.leased() {
		if leased {
			n++
		}
	}
	return n
}

// member is a consumer with Sessions, in a process of its own.
type member struct {
	*process
	c    *Consumer
	stop context.CancelFunc
	end  chan error

	mu     sync.Mutex
	events []Event
}

// join runs a consumer until it is stopped.
func (r *rig) join(p *process, h Handler, s *SessionsOptions, o ConsumerOptions) *member {
	r.t.Helper()
	m := &member{process: p, end: make(chan error, 1)}
	o.Markers, o.Sessions, o.Poison = p.markers, r.sessions(p.wire, s), p.poison
	o.Visibility, o.Backoff = 9*time.Second, pollEvery(time.Second)
	if o.Poll.Base == 0 {
		o.Poll = pollEvery(time.Second)
	}
	o.Event = func(e Event) {
		m.mu.Lock()
		defer m.mu.Unlock()
		m.events = append(m.events, e)
	}
	var err error
	if m.c, err = NewConsumer(p.queue, h, &o); err != nil {
		r.t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	m.stop = cancel
	go func() { m.end <- m.c.Run(ctx) }()
	return m
}

// leave stops it and waits.
func (m *member) leave() error {
	m.stop()
	return <-m.end
}

// kinds are those of its events, and what the errors of one of them say.
func (m *member) kinds(say EventKind) (kinds []EventKind, texts []string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, e := range m.events {
		kinds = append(kinds, e.Kind)
		if e.Kind == say && e.Err != nil {
			texts = append(texts, e.Err.Error())
		}
	}
	return kinds, texts
}

// untilEmpty lets time pass until the queue is empty, hidden messages included.
func (r *rig) untilEmpty(most time.Duration) {
	for began := time.Now(); len(r.left(r.queue)) > 0 && time.Since(began) < most; {
		pass(time.Second)
	}
}

func (r *rig) sendAs(as Encoding, id string) {
	r.t.Helper()
	p, err := NewProducer(r.queue, &ProducerOptions{Encoding: as})
	if err != nil {
		r.t.Fatal(err)
	}
	if _, err := p.Send(context.Background(), Outgoing{ID: id, Body: []byte(id)}); err != nil {
		r.t.Fatal(err)
	}
}

// deaf has a process receive once, and never again.
func deaf() aztest.Fault {
	return aztest.Fault{Kind: aztest.Refuse, Match: aztest.Op("Get Messages"), Skip: 1}
}

func TestADeadHolderIsTakenOverWhenItsLeaseIsOverAndNotBefore(t *testing.T) {
	for _, seconds := range []int{15, 60} {
		inSessionBubble(t, func(t *testing.T, r *rig) {
			o := &SessionsOptions{Duration: time.Duration(seconds) * time.Second}
			r.send("m")
			first := r.process()
			a := r.join(first, func(ctx context.Context, _ *Message) error {
				<-ctx.Done()
				pass(10 * time.Minute)
				return ctx.Err()
			}, o, ConsumerOptions{})
			pass(47 * time.Second)
			first.wire.SetFaults(aztest.Fault{Kind: aztest.LoseRequest})
			cut := time.Now()
			var at time.Time
			b := r.join(r.process(), func(context.Context, *Message) error {
				if at = time.Now(); r.alive() != 1 {
					t.Errorf("%d sessions are alive when it is taken over", r.alive())
				}
				return nil
			}, o, ConsumerOptions{MaxDeliveries: 2})
			for pass(time.Second); r.alive() == 2; {
				pass(time.Second)
			}
			over := time.Now()
			r.untilEmpty(2 * time.Minute)
			// What follows the end of the lease is less than a third of Visibility, and of the poll, and of our looks.
			if late := at.Sub(over); late < -time.Second || late > 6*time.Second || over.Sub(cut) > o.Duration || len(r.buried()) != 0 {
				t.Errorf("taken over %v after the end of the lease, which was %v after that of the connections", late, over.Sub(cut))
			}
			_, why := b.kinds(Returned)
			if len(why) == 0 || !strings.Contains(why[0], "session sessions/azconcsession/") || !strings.HasSuffix(why[0], "is alive") {
				t.Errorf("while it waited: %q", why)
			}
			if err := b.leave(); err != nil {
				t.Error(err)
			}
			_ = a.leave() // stuck
			pass(time.Hour)
		})
	}
}

// stubborn runs two consumers of one message. The renewals of the first one's fail, and its handler goes on regardless.
func stubborn(t *testing.T, as Encoding, deafened, blind bool, faults ...aztest.Fault) (effects int) {
	inSessionBubble(t, func(t *testing.T, r *rig) {
		r.sendAs(as, "m")
		var runs tally
		work := func(_ context.Context, _ *Message) error {
			runs.add("m")
			pass(50 * time.Second)
			return nil
		}
		first := r.process()
		wire := []aztest.Fault{{Kind: aztest.LoseRequest, Match: aztest.Op("Update Message")}}
		if deafened {
			wire = append(wire, deaf())
		}
		first.wire.SetFaults(wire...)
		o := ConsumerOptions{MaxDeliveries: 2, MaxAttempts: 2}
		a := r.join(first, work, nil, o)
		pass(8 * time.Second)
		o.blind = blind
		second := r.process()
		second.wire.SetFaults(faults...)
		b := r.join(second, work, nil, o)
		r.untilEmpty(20 * time.Minute)
		pass(10 * time.Second)
		if err := errors.Join(a.leave(), b.leave()); err != nil {
			t.Error(err)
		}
		if left, buried := len(r.left(r.queue)), len(r.buried()); left+buried != 0 {
			t.Errorf("%d left, %d buried:\n%v\n%v", left, buried, first.wire.Log(), second.wire.Log())
		}
		kinds, texts := b.kinds(Failed)
		if len(faults) == 0 && len(texts) != 0 || deafened && !blind && !slices.Contains(kinds, Returned) {
			t.Errorf("%v %q", kinds, texts)
		}
		if alive := r.alive(); alive != 0 {
			t.Errorf("%d sessions are left", alive)
		}
		effects = runs.n["m"]
	})
	return effects
}

func TestAHandlerThatGoesOnIsWaitedForAndItsMessageIsHandledOnce(t *testing.T) {
	for _, as := range []Encoding{Envelope, Base64} {
		for _, deafened := range []bool{false, true} {
			if n := stubborn(t, as, deafened, false); n != 1 {
				t.Errorf("%s, %v: handled %d times", as, deafened, n)
			}
		}
		if n := stubborn(t, as, true, true); n < 2 {
			t.Errorf("%s: the planted bug was not found: handled %d times", as, n)
		}
	}
}

// TestEveryFaultAtEveryRequestOfOneThatWaits breaks one request of the second consumer, each in turn, in each way: what the
// first has in its hands stays there.
func TestEveryFaultAtEveryRequestOfOneThatWaits(t *testing.T) {
	for name, fault := range sessionFaults {
		for k := range 16 {
			t.Run(fmt.Sprintf("%s/%d", name, k), func(t *testing.T) {
				fault.Skip, fault.Count = k, 1
				if n := stubborn(t, Envelope, true, false, fault); n != 1 {
					t.Errorf("handled %d times", n)
				}
			})
		}
	}
}

var sessionFaults = map[string]aztest.Fault{
	"not sent":      {Kind: aztest.LoseRequest},
	"answer lost":   {Kind: aztest.LoseAnswer},
	"503":           {Kind: aztest.Throttle},
	"500 after all": {Kind: aztest.FailAfterCommit},
	"twice":         {Kind: aztest.AnswerTwice},
	"hangs":         {Kind: aztest.Hang},
}

// TestEveryFaultAtEveryRequestOfATakeover breaks one request of the consumer that takes over from one that is dead.
func TestEveryFaultAtEveryRequestOfATakeover(t *testing.T) {
	for name, fault := range sessionFaults {
		for k := range 24 {
			t.Run(fmt.Sprintf("%s/%d", name, k), func(t *testing.T) {
				inSessionBubble(t, func(t *testing.T, r *rig) {
					r.send("m")
					o := &SessionsOptions{Duration: 15 * time.Second}
					first := r.process()
					a := r.join(first, func(ctx context.Context, _ *Message) error { <-ctx.Done(); return ctx.Err() }, o, ConsumerOptions{})
					pass(2 * time.Second)
					first.wire.SetFaults(aztest.Fault{Kind: aztest.LoseRequest})
					pass(10 * time.Second)
					second := r.process()
					fault.Skip, fault.Count = k, 1
					second.wire.SetFaults(fault)
					runs := 0
					b := r.join(second, func(context.Context, *Message) error { runs++; return nil }, o, ConsumerOptions{MaxDeliveries: 2})
					r.untilEmpty(5 * time.Minute)
					if err := b.leave(); err != nil || len(r.left(r.queue)) != 0 || runs < 1 || runs > 2 {
						t.Errorf("%v, %d left, %d runs:\n%v", err, len(r.left(r.queue)), runs, second.wire.Log())
					}
					_ = a.leave()
					pass(time.Hour)
				})
			})
		}
	}
}

// TestWhatIsGivenBackIsNotWaitedFor has the first consumer give its message back while its session lives on.
func TestWhatIsGivenBackIsNotWaitedFor(t *testing.T) {
	failed := errors.New("failed")
	lose := func(p *process) {
		p.wire.SetFaults(aztest.Fault{Kind: aztest.LoseRequest, Match: aztest.Op("Update Message", "Get Messages")})
	}
	for _, tt := range []struct {
		name   string
		give   func(ctx context.Context, a *member) error
		within time.Duration
		marked map[Encoding]int // requests for the marker, beside the claims
	}{
		{"retried", func(context.Context, *member) error { return RetryAfter(failed, time.Second) }, 3 * time.Second, map[Encoding]int{Base64: 1}},
		{"backed off", func(context.Context, *member) error { return failed }, 3 * time.Second, map[Encoding]int{Base64: 1}},
		{"postponed", func(context.Context, *member) error { return Postpone(time.Second) }, 3 * time.Second, map[Encoding]int{Base64: 1}},
		{"stopped", func(ctx context.Context, a *member) error { a.stop(); <-ctx.Done(); return ctx.Err() }, 3 * time.Second, map[Encoding]int{Base64: 1}},
		{"lost", func(ctx context.Context, a *member) error {
			lose(a.process)
			<-ctx.Done()
			pass(3 * time.Second)
			return ctx.Err()
		}, 5 * time.Second, map[Encoding]int{Envelope: 2, Base64: 2}},
	} {
		for _, as := range []Encoding{Envelope, Base64} {
			t.Run(tt.name+"/"+string(as), func(t *testing.T) {
				inSessionBubble(t, func(t *testing.T, r *rig) {
					r.sendAs(as, "stay")
					r.sendAs(as, "m")
					first := r.process()
					first.wire.SetFaults(deaf())
					var a *member
					gave, taken := make(chan time.Time, 9), make(chan time.Time, 9)
					joined := make(chan bool)
					a = r.join(first, func(ctx context.Context, m *Message) error {
						if <-joined; string(m.Body) == "stay" { // so that the consumer goes on living
							pass(5 * time.Minute)
							return nil
						}
						pass(time.Second)
						err := tt.give(ctx, a)
						gave <- time.Now()
						return err
					}, nil, ConsumerOptions{SoftStop: 2 * time.Second, HardStop: time.Hour})
					close(joined)
					pass(time.Second / 2)
					claims := tableRequests(first)
					b := r.join(r.process(), func(_ context.Context, m *Message) error {
						if string(m.Body) == "m" {
							taken <- time.Now()
						}
						return nil
					}, nil, ConsumerOptions{Concurrency: 1})
					if took := (<-taken).Sub(<-gave); took < 0 || took > tt.within || r.alive() != 2 {
						t.Errorf("handled after %v, %d sessions alive:\n%v", took, r.alive(), r.service.Log())
					}
					if got := tableRequests(first) - claims; got != tt.marked[as] {
						t.Errorf("%d requests to say that it is free, want %d", got, tt.marked[as])
					}
					_ = errors.Join(b.leave(), a.leave())
					pass(time.Hour)
				})
			})
		}
	}
}

// tableRequests is how often a process has asked for or written markers.
func tableRequests(p *process) (n int) {
	for _, q := range p.wire.Log() {
		if q.Op == "Entity Group Transaction" || q.Op == "Query Entities" {
			n++
		}
	}
	return n
}

func TestPatienceWithASessionThatLivesHasAnEnd(t *testing.T) {
	for _, patience := range []time.Duration{0, 2 * time.Minute} {
		inSessionBubble(t, func(t *testing.T, r *rig) {
			r.send("m")
			o := &SessionsOptions{Patience: patience}
			first := r.process()
			first.wire.SetFaults(deaf(), aztest.Fault{Kind: aztest.LoseRequest, Match: aztest.Op("Update Message")})
			a := r.join(first, func(context.Context, *Message) error { pass(time.Hour); return nil }, o, ConsumerOptions{HardStop: time.Hour})
			pass(time.Second)
			began := time.Now()
			var at time.Time
			b := r.join(r.process(), func(context.Context, *Message) error { at = time.Now(); return nil }, o, ConsumerOptions{MaxDeliveries: 2})
			r.untilEmpty(20 * time.Minute)
			least := cmp.Or(patience, 10*time.Minute)
			if took := at.Sub(began); at.IsZero() || took < least || took > least+15*time.Second {
				t.Errorf("taken over after %v", took)
			}
			_, texts := b.kinds(Failed)
			if len(texts) != 1 || !strings.Contains(texts[0], "not waited for any longer: session sessions/azconcsession/") {
				t.Errorf("%q", texts)
			}
			if err := errors.Join(b.leave(), a.leave()); err != nil || len(r.buried()) != 0 {
				t.Errorf("%v, %d buried", err, len(r.buried()))
			}
		})
	}
}

// A session that is lost is followed by another, and what was claimed under it is taken over by whoever receives it.
func TestASessionThatIsLostIsFollowedByAnother(t *testing.T) {
	for name, lose := range map[string]func(*testing.T, *rig, *process){
		"broken": func(t *testing.T, r *rig, _ *process) {
			for blob := range r.leased() {
				if _, err := pessimistic.Break(t.Context(), pessimistic.Blob(r.service.BlockBlob("sessions", blob)), nil); err != nil {
					t.Fatal(err)
				}
			}
		},
		"not renewed": func(_ *testing.T, _ *rig, p *process) {
			p.wire.SetFaults(aztest.Fault{Kind: aztest.LoseRequest, Match: func(q *aztest.Request) bool { return strings.HasPrefix(q.Resource, "sessions/") }})
			pass(3 * time.Minute)
			p.wire.SetFaults()
		},
	} {
		t.Run(name, func(t *testing.T) {
			inSessionBubble(t, func(t *testing.T, r *rig) {
				r.send("long")
				p := r.process()
				var runs tally
				a := r.join(p, func(_ context.Context, m *Message) error {
					runs.add(m.Key)
					if m.Key == "long" {
						pass(10 * time.Minute)
					}
					return nil
				}, nil, ConsumerOptions{})
				pass(time.Minute)
				was := r.leased()
				lose(t, r, p)
				pass(2 * time.Minute)
				now := r.leased()
				for blob := range was {
					if _, still := now[blob]; still {
						t.Errorf("%s is still there", blob)
					}
				}
				_, texts := a.kinds(Failed)
				if r.alive() != 1 || len(now) != 1 || len(texts) == 0 || !strings.Contains(texts[0], "is over, a new one begins") {
					t.Errorf("%v, %q", now, texts)
				}
				r.send("short")
				r.untilEmpty(20 * time.Minute)
				if err := a.leave(); err != nil || runs.n["long"] != 1 || runs.n["short"] != 1 || len(r.leased()) != 0 {
					t.Errorf("%v, runs %v, left %v", err, runs.n, r.leased())
				}
			})
		})
	}
}

func TestASessionCostsFourRequestsAndOnePerThirdOfItsDuration(t *testing.T) {
	inSessionBubble(t, func(t *testing.T, r *rig) {
		a := r.join(r.process(), func(context.Context, *Message) error { return nil }, nil, ConsumerOptions{})
		pass(110 * time.Second)
		if err := a.leave(); err != nil {
			t.Error(err)
		}
		var ops []string
		for _, q := range r.service.Log() {
			if strings.HasPrefix(q.Resource, "sessions/azconcsession/") {
				ops = append(ops, q.Op)
			}
		}
		want := []string{"Put Blob", "Acquire Blob Lease", "Renew Blob Lease", "Renew Blob Lease", "Renew Blob Lease", "Renew Blob Lease", "Renew Blob Lease", "Release Blob Lease", "Delete Blob"}
		if !slices.Equal(ops, want) {
			t.Errorf("%q", ops)
		}
	})
}

// TestEveryFaultAtEveryRequestOfASession breaks one request of a session's life, each in turn, in each way.
func TestEveryFaultAtEveryRequestOfASession(t *testing.T) {
	for name, fault := range sessionFaults {
		for k := range 7 {
			t.Run(fmt.Sprintf("%s/%d", name, k), func(t *testing.T) {
				inSessionBubble(t, func(t *testing.T, r *rig) {
					p := r.process()
					fault.Skip, fault.Count = k, 1
					fault.Match = func(q *aztest.Request) bool { return strings.HasPrefix(q.Resource, "sessions/") }
					p.wire.SetFaults(fault)
					a := r.join(p, func(context.Context, *Message) error { return nil }, nil, ConsumerOptions{})
					pass(75 * time.Second)
					if r.alive() != 1 {
						t.Errorf("%d sessions", r.alive())
					}
					r.send("m")
					r.untilEmpty(time.Minute)
					if err := a.leave(); err != nil || len(r.left(r.queue)) != 0 {
						t.Errorf("%v, %d left", err, len(r.left(r.queue)))
					}
					if left := r.leased(); len(left) != 0 && name != "hangs" {
						t.Errorf("left behind: %v\n%v", left, p.wire.Log())
					}
				})
			})
		}
	}
}

func TestRunFailsWithoutASession(t *testing.T) {
	inSessionBubble(t, func(t *testing.T, r *rig) {
		for _, fault := range []aztest.Fault{
			{Kind: aztest.Answer, Status: 403, Code: "AuthorizationFailure", Match: aztest.Op("Put Blob")},
			{Kind: aztest.Answer, Status: 403, Code: "AuthorizationFailure", Match: aztest.Op("Acquire Blob Lease")},
			{Kind: aztest.LoseRequest, Match: aztest.Op("Put Blob", "Acquire Blob Lease")},
		} {
			p := r.process()
			p.wire.SetFaults(fault)
			a := r.join(p, func(context.Context, *Message) error { return nil }, nil, ConsumerOptions{})
			if err := <-a.end; err == nil || !strings.HasPrefix(err.Error(), "session in sessions: ") {
				t.Error(err)
			}
			p.wire.SetFaults(aztest.Fault{Kind: aztest.Hang})
			b := r.join(p, func(context.Context, *Message) error { return nil }, nil, ConsumerOptions{})
			pass(time.Second)
			began := time.Now()
			if err := b.leave(); err != nil || time.Since(began) > time.Minute {
				t.Errorf("told to stop while it begins: %v after %v", err, time.Since(began))
			}
			if left := r.leased(); len(left) != 0 {
				t.Errorf("left behind: %v", left)
			}
		}
	})
}

// A handler that is stuck keeps its session after Run has returned.
func TestWhatIsStuckIsNotTakenOver(t *testing.T) {
	inSessionBubble(t, func(t *testing.T, r *rig) {
		r.send("m")
		a := r.join(r.process(), func(context.Context, *Message) error { pass(5 * time.Minute); return nil }, nil, ConsumerOptions{SoftStop: time.Second, HardStop: time.Second})
		pass(time.Second)
		if err := a.leave(); !errors.As(err, new(*StuckError)) {
			t.Errorf("%v", err)
		}
		pass(4 * time.Minute)
		if r.alive() != 1 {
			t.Errorf("%d sessions while a handler is at work", r.alive())
		}
		pass(2 * time.Minute)
		if left := len(r.left(r.queue)); left != 0 || len(r.leased()) != 0 {
			t.Errorf("%d messages and %v left", left, r.leased())
		}
	})
}

func TestWhatSessionsNeedIsSaid(t *testing.T) {
	inSessionBubble(t, func(t *testing.T, r *rig) {
		k := r.sessions(r.service, nil)
		for _, o := range []ConsumerOptions{{Sessions: k}, {Sessions: k, Markers: r.markers, Dedupe: DedupeRedelivery}, {Sessions: k, Markers: r.markers, Dedupe: DedupeNone}} {
			if _, err := NewConsumer(r.queue, func(context.Context, *Message) error { return nil }, &o); err == nil || !strings.Contains(err.Error(), "they need Markers, with owner or complete") {
				t.Errorf("%v", err)
			}
		}
		for text, o := range map[string]SessionsOptions{
			"Duration: 10s is not in 15s…60s": {Duration: 10 * time.Second}, "Duration: 15.5s": {Duration: 15500 * time.Millisecond},
			"Duration: 2m0s": {Duration: 2 * time.Minute}, "Patience: -1s is negative": {Patience: -time.Second},
		} {
			if _, err := NewSessions(r.service.Container("sessions"), &o); err == nil || !strings.Contains(err.Error(), text) {
				t.Errorf("%q: %v", text, err)
			}
		}
		if _, err := NewSessions(nil, nil); err == nil {
			t.Error("no container")
		}
		if err := k.living(t.Context(), "elsewhere/azconcsession/1"); err == nil || !strings.Contains(err.Error(), "is not in container sessions") {
			t.Errorf("of another container: %v", err)
		}
	})
}

func TestGCDeletesTheSessionsOfTheDead(t *testing.T) {
	inSessionBubble(t, func(t *testing.T, r *rig) {
		idle := func(context.Context, *Message) error { return nil }
		dying := r.process()
		dead := r.join(dying, idle, nil, ConsumerOptions{Poll: pollEvery(time.Hour)})
		living := r.join(r.process(), idle, nil, ConsumerOptions{Poll: pollEvery(time.Hour)})
		pass(time.Second)
		dying.wire.SetFaults(aztest.Fault{Kind: aztest.LoseRequest})
		k := r.sessions(r.service, nil)
		pass(50 * time.Minute)
		if n, err := k.GC(t.Context()); n != 0 || err != nil {
			t.Errorf("%d deleted within the hour, %v", n, err)
		}
		pass(time.Hour)
		if n, err := k.GC(t.Context()); n != 1 || err != nil || r.alive() != 1 {
			t.Errorf("%d deleted, %v, %d alive", n, err, r.alive())
		}
		_ = errors.Join(dead.leave(), living.leave())
	})
}
