package idempotent

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/azconc/azconc/idempotent/internal/markers"
	"github.com/azconc/azconc/idempotent/internal/session"
	"github.com/azconc/azconc/pessimistic"
	"github.com/azconc/azconc/pkg/aztest"
	"github.com/azconc/azconc/pkg/observe"
)

func TestADeadHolderIsTakenOverWhenItsLeaseIsOverAndNotBefore(t *testing.T) {
	for seconds, as := range map[int]Encoding{15: Base64, 60: Envelope} {
		inSessionBubble(t, func(t *testing.T, r *rig) {
			o := &SessionsOptions{Duration: time.Duration(seconds) * time.Second}
			r.sendAs(as, "m")
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
			b := r.join(r.process(), func(_ context.Context, m *Message) error {
				if at = time.Now(); r.alive() != 1 {
					t.Errorf("%d sessions are alive when it is taken over", r.alive())
				}
				// What is no envelope counts the first one's attempt too.
				if want := map[Encoding]int{Envelope: 1, Base64: 2}[as]; m.Attempt != want || m.Deliveries < 3 {
					t.Errorf("%s: attempt %d of %d deliveries, want %d", as, m.Attempt, m.Deliveries, want)
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
			_, why := b.kinds(observe.Returned)
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
			_, texts := b.kinds(observe.Failed)
			if len(texts) != 1 || !strings.Contains(texts[0], "not waited for any longer: session sessions/azconcsession/") {
				t.Errorf("%q", texts)
			}
			if err := errors.Join(b.leave(), a.leave()); err != nil || len(r.buried()) != 0 {
				t.Errorf("%v, %d buried", err, len(r.buried()))
			}
		})
	}
}

// After a session is lost, another begins, and any consumer may take over the messages that were claimed under the lost one.
func TestASessionThatIsLostIsFollowedByAnother(t *testing.T) {
	for name, lose := range map[string]func(*testing.T, *rig, *process){
		"broken": func(t *testing.T, r *rig, _ *process) {
			for blob := range r.leased() {
				if _, err := pessimistic.Break(t.Context(), pessimistic.NewBlob(r.service.BlockBlob("sessions", blob)), nil); err != nil {
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
				_, texts := a.kinds(observe.Failed)
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

func TestRunFailsWithoutASession(t *testing.T) {
	inSessionBubble(t, func(t *testing.T, r *rig) {
		for _, fault := range []aztest.Fault{
			{Kind: aztest.Answer, Status: 403, Code: "AuthorizationFailure", Match: aztest.Op("Put Blob")},
			{Kind: aztest.Answer, Status: 403, Code: "AuthorizationFailure", Match: aztest.Op("Acquire Blob Lease")},
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
				t.Errorf("stopped while it begins: %v after %v", err, time.Since(began))
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
		for _, o := range []ConsumerOptions{{Sessions: k, Dedupe: DedupeNone}, {Sessions: k, Markers: r.markers, Dedupe: DedupeRedelivery}, {Sessions: k, Markers: r.markers, Dedupe: DedupeNone}} {
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
		if alive, err := k.living(t.Context(), "elsewhere/azconcsession/1"); err != nil || alive == nil || !strings.Contains(alive.Error(), "is not in container sessions") {
			t.Errorf("of another container: %v, %v", alive, err)
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
		r.service.Reset()
		found, err := k.List(t.Context())
		if host, _ := os.Hostname(); err != nil || r.service.Requests() != 1 || len(found) != 2 || found[0].Alive == found[1].Alive ||
			found[0].Owner != fmt.Sprint(host, "/", os.Getpid()) || found[0].Since.IsZero() || found[0].Name >= found[1].Name {
			t.Errorf("List = %+v, %v in %d requests, want one that is alive and one that is not", found, err, r.service.Requests())
		}
		if n, err := k.GC(t.Context()); n != 1 || err != nil || r.alive() != 1 {
			t.Errorf("%d deleted, %v, %d alive", n, err, r.alive())
		}
		_ = errors.Join(dead.leave(), living.leave())
	})
}

func TestWhatItCouldNotSayIsFreeIsNotWaitedForByItself(t *testing.T) {
	inSessionBubble(t, func(t *testing.T, r *rig) {
		r.sendAs(Base64, "m")
		p := r.process()
		p.wire.SetFaults(aztest.Fault{Kind: aztest.Answer, Status: 403, Code: "AuthorizationFailure", Match: aztest.Op("Entity Group Transaction"), Skip: 1, Count: 1})
		runs := 0
		a := r.join(p, func(context.Context, *Message) error {
			if runs++; runs == 1 {
				return RetryAfter(errors.New("later"), time.Second)
			}
			return nil
		}, nil, ConsumerOptions{})
		began := time.Now()
		r.untilEmpty(time.Minute)
		_, texts := a.kinds(observe.Failed)
		if took := time.Since(began); runs != 2 || took > 4*time.Second || len(texts) != 1 || !strings.Contains(texts[0], "others may wait for the message, which is free") {
			t.Errorf("%d runs in %v, %q", runs, took, texts)
		}
		if n := r.ops()["Get Blob Properties"]; n != 0 {
			t.Errorf("it looked at its own session %d times", n)
		}
		if err := a.leave(); err != nil {
			t.Error(err)
		}
	})
}

// A holder that was suspended does not change the claim of the consumer that has taken its message over.
func TestOnlyTheLatestHolderCanSayThatAMessageIsFree(t *testing.T) {
	inSessionBubble(t, func(t *testing.T, r *rig) {
		r.send("m")
		c := r.consumer(func(context.Context, *Message) error { return nil }, ConsumerOptions{Markers: r.markers, Sessions: r.sessions(r.service, nil)})
		var err error
		if c.session, err = session.Begin(t.Context(), c.o.Sessions.container, time.Minute, observe.Hooks{}, func(err error) { t.Error(err) }); err != nil {
			t.Fatal(err)
		}
		defer c.session.End(t.Context())
		look := func() markers.Holding {
			m, there, err := r.markers.table.Read(t.Context(), markers.PartitionOf(c.queue.Path, "m"), markers.RowOf("m"))
			if !there || err != nil {
				t.Fatal(there, err)
			}
			return m.Holding
		}
		receive := func() *delivery {
			batch, err := c.receive(t.Context(), 1)
			if err != nil || len(batch) != 1 || c.dedupe.decide(t.Context(), batch) != nil || batch[0].fate != run {
				t.Fatal(batch, err)
			}
			delete(c.inFlight, batch[0].m.ID)
			delete(c.keys, batch[0].m.Key)
			return batch[0]
		}
		early := receive()
		pass(c.o.Visibility + time.Second)
		late := receive()
		if err := early.claim.free(t.Context()); err != nil || look().Freed != 0 || look().Delivery != 2 {
			t.Errorf("%v, %+v", err, look())
		}
		if err := late.claim.free(t.Context()); err != nil || look().Freed != 2 {
			t.Errorf("%v, %+v", err, look())
		}
	})
}

func TestPoisonDoesNotSayWhoGaveItBack(t *testing.T) {
	inSessionBubble(t, func(t *testing.T, r *rig) {
		r.send("m")
		a := r.join(r.process(), func(context.Context, *Message) error { return errors.New("no") }, nil, ConsumerOptions{MaxAttempts: 2})
		r.untilEmpty(time.Minute)
		if all := r.buried(); len(all) != 1 || all[0].Freed != "" || all[0].Attempts != 1 {
			t.Errorf("%+v", all)
		}
		if err := a.leave(); err != nil {
			t.Error(err)
		}
	})
}
