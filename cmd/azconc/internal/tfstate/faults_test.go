package tfstate

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	sdklease "github.com/Azure/azure-sdk-for-go/sdk/storage/azblob/lease"

	"github.com/azconc/azconc/pkg/aztest"
	"github.com/azconc/azconc/pkg/aztest/bubble"
)

// possible are the states that an apply of "bb" on "aa" may leave: none of its writes, the first one, or both. Nothing is torn.
var possible = []string{"aa", "aab", "aabb"}

// TestAClientKilledAtEveryRequest: the client dies before or after each of its requests, and azconc with it, or azconc notices.
// Then 60 s later the next run can lock, and reads what was stored.
func TestAClientKilledAtEveryRequest(t *testing.T) {
	for _, azconcToo := range []bool{false, true} {
		for at := 1; at <= 5; at++ { // LOCK, GET, POST, POST, UNLOCK
			for _, after := range []bool{false, true} {
				t.Run(fmt.Sprintf("azconc too %t, request %d, after %t", azconcToo, at, after), func(t *testing.T) {
					synctest.Test(t, func(t *testing.T) {
						w := newWorld(t)
						w.put("aa")
						v, kill := w.run()
						c := newClient(t, v, adas, "ada@ci")
						c.killAt, c.killAfter = at, after
						if err := c.apply("bb"); !errors.Is(err, errKilled) {
							t.Fatal(err)
						}
						if azconcToo {
							kill()
							bubble.Sleep(60 * time.Second)
						} else {
							v.session.Close()
						}
						want := possible[max(0, min(2, at-3))]
						if after {
							want = possible[max(0, min(2, at-2))]
						}
						if got := w.state(); got != want || w.leased() {
							t.Errorf("the state is %q, leased %t, want %q and free", got, w.leased(), want)
						}
						next, _ := w.run()
						if err := newClient(t, next, bobs, "bob@ci").apply("cc"); err != nil || w.state() != want+"cc" {
							t.Errorf("the next run: %v, %q", err, w.state())
						}
						v.session.Close()
					})
				})
			}
		}
	}
}

// TestALostAnswerToTheClient: the answer to each request is lost once, or always. Once must not be noticed.
func TestALostAnswerToTheClient(t *testing.T) {
	for at := 1; at <= 5; at++ {
		for _, always := range []bool{false, true} {
			t.Run(fmt.Sprintf("request %d, always %t", at, always), func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					w := newWorld(t)
					w.put("aa")
					v, _ := w.run()
					c := newClient(t, v, adas, "ada@ci")
					c.lose = func(n int) bool { return n == at || always && n >= at }
					err := c.apply("bb")
					if got := w.state(); !slices.Contains(possible, got) || !always && (err != nil || got != "aabb" || w.leased()) {
						t.Errorf("%v, the state is %q, leased %t, notes %v", err, got, w.leased(), w.notes)
					}
					v.session.Close()
					if w.leased() {
						t.Error("leased after the end of the run")
					}
				})
			})
		}
	}
}

// TestALostAnswerOfTheService: each kind of request to the service loses its answer, arrives late, or fails once. The client
// notices nothing.
func TestALostAnswerOfTheService(t *testing.T) {
	for _, kind := range []aztest.FaultKind{aztest.LoseAnswer, aztest.LoseRequest, aztest.Throttle, aztest.FailAfterCommit, aztest.DelayCommit, aztest.RepeatLater, aztest.CommitAfterBreak} {
		for _, op := range []string{"Acquire Blob Lease", "Release Blob Lease", "Put Blob", "Set Blob Metadata", "Snapshot Blob", "Get Blob", "Get Blob Properties"} {
			for _, isNew := range []bool{false, true} {
				t.Run(fmt.Sprintf("%s of %s, new %t", kind, op, isNew), func(t *testing.T) {
					synctest.Test(t, func(t *testing.T) {
						w := newWorld(t)
						want := "bb"
						if !isNew {
							w.put("aa")
							want = "aabb"
						}
						v, _ := w.run()
						w.service.SetFaults(aztest.Fault{Kind: kind, Match: aztest.Op(op), Count: 1, Delay: 3 * time.Second})
						err := newClient(t, v, adas, "ada@ci").apply("bb")
						w.service.SetFaults()
						bubble.Sleep(5 * time.Second)
						w.leased()                // delayed requests arrive with it
						bubble.Sleep(time.Minute) // and the lease of a late acquisition ends
						if got := w.state(); err != nil || got != want || w.leased() {
							t.Errorf("%v, the state is %q, leased %t, notes %v", err, got, w.leased(), w.notes)
						}
						v.session.Close()
					})
				})
			}
		}
	}
}

// TestOneAnswerInFiveIsLost: two runs take turns while one answer in five is lost on both ways.
func TestOneAnswerInFiveIsLost(t *testing.T) {
	for seed := range uint64(8) {
		synctest.Test(t, func(t *testing.T) {
			w := newWorld(t)
			w.service = aztest.New(&aztest.Options{Seed: seed})
			w.service.BlockBlob("tfstate", "prod")
			w.service.SetFaults(aztest.Fault{Kind: aztest.LoseAnswer, Probability: 0.2})
			want := ""
			for n, who := range []string{adas, bobs, adas, bobs} {
				v, _ := w.run()
				c := newClient(t, v, who, "another")
				c.lose = func(n int) bool { return (uint64(n)+seed)%5 == 0 }
				word := fmt.Sprint(n, n)
				for {
					err := c.apply(word)
					if err == nil {
						break
					}
					if l, ok := errors.AsType[*lockedError](err); !ok {
						t.Fatalf("seed %d: %v, notes %v", seed, err, w.notes)
					} else if l.holder.ID == who {
						t.Fatalf("seed %d: %s waits for itself", seed, who)
					}
					bubble.Sleep(10 * time.Second) // of a lock whose release got lost
				}
				want += word
				v.session.Close()
			}
			w.service.SetFaults()
			if got := w.state(); got != want {
				t.Errorf("seed %d: the state is %q, want %q", seed, got, want)
			}
		})
	}
}

// A run that was paused wakes up, and its client posts: another run may have worked meanwhile, or not.
func TestAPausedRunCannotOverwrite(t *testing.T) {
	for _, meanwhile := range []string{"nobody", "another run that is done", "another run that holds it", "another run that stored the same"} {
		t.Run(meanwhile, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w := newWorld(t)
				w.put("aa")
				v, pause, resume := w.pausable()
				c := newClient(t, v, adas, "ada@ci")
				if err := c.lock(); err != nil {
					t.Fatal(err)
				}
				if _, err := c.get(); err != nil {
					t.Fatal(err)
				}
				pause() // nothing is renewed
				bubble.Sleep(2 * time.Minute)
				other, _ := w.run()
				b := newClient(t, other, bobs, "bob@ci")
				want := "aa"
				switch meanwhile {
				case "another run that is done":
					if err := b.apply("bb"); err != nil {
						t.Fatal(err)
					}
					want = "aabb"
				case "another run that holds it":
					if err := b.lock(); err != nil {
						t.Fatal(err)
					}
				case "another run that stored the same":
					if err := b.apply("XX"); err != nil {
						t.Fatal(err)
					}
					want = "aaXX"
				}
				resume()
				err := c.post("aaXX")
				if meanwhile == "nobody" {
					// Nobody has had the lease since, which the service has confirmed.
					if err != nil || w.state() != "aaXX" || !w.leased() {
						t.Errorf("%v, %q, leased %t", err, w.state(), w.leased())
					}
				} else if err == nil || w.state() != want {
					t.Errorf("%v, the state is %q, want %q", err, w.state(), want)
				}
				if err := c.unlock(); (err == nil) != (meanwhile == "nobody") {
					t.Errorf("unlock: %v", err)
				}
				if w.losses() == 0 {
					t.Error("the run did not learn that its lock is lost")
				}
				v.session.Close()
				if meanwhile == "another run that holds it" && !w.leased() {
					t.Error("bob's lock is gone")
				}
				other.session.Close()
			})
		})
	}
}

// While the service cannot be reached, a POST waits, and is stored as soon as it can be.
func TestAStateOutlivesAnOutage(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		w.put("aa")
		v, cut, resume := w.pausable()
		c := newClient(t, v, adas, "ada@ci")
		if err := c.lock(); err != nil {
			t.Fatal(err)
		}
		if _, err := c.get(); err != nil {
			t.Fatal(err)
		}
		cut()
		time.AfterFunc(3*time.Minute, resume)
		if err := c.post("new"); err != nil || w.state() != "new" {
			t.Errorf("%v, %q, notes %v", err, w.state(), w.notes)
		}
		if err := c.unlock(); err != nil || w.leased() {
			t.Errorf("unlock: %v", err)
		}
		if w.losses() == 0 {
			t.Error("nobody has stopped the client when its lock was in doubt")
		}
	})
}

// Force-unlock of OpenTofu names an ID, and releases that lock of another run and no other.
func TestForceUnlockOfAnotherRun(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		w.put("aa")
		one, _ := w.run()
		two, _ := w.run()
		a, b := newClient(t, one, adas, "ada@ci"), newClient(t, two, bobs, "bob@ci")
		if err := a.lock(); err != nil {
			t.Fatal(err)
		}
		if _, err := a.get(); err != nil {
			t.Fatal(err)
		}
		r, err := b.do("UNLOCK", unlockPath, []byte(`{"ID":"`+adas+`","Operation":"","Info":"","Who":"","Version":"","Created":"0001-01-01T00:00:00Z","Path":""}`))
		if err != nil || r.status != 200 || w.leased() {
			t.Fatalf("%v, %d, leased %t", err, r.status, w.leased())
		}
		if err := a.post("stale"); err == nil || w.state() != "aa" {
			t.Errorf("the run that was unlocked wrote: %v, %q", err, w.state())
		}
		bubble.Sleep(time.Minute)
		if w.losses() != 1 {
			t.Errorf("lost: %v", w.lost)
		}
		if err := b.apply("bb"); err != nil || w.state() != "aabb" {
			t.Errorf("%v, %q, %s", err, w.state(), strings.Join(w.notes, "\n"))
		}
		one.session.Close()
	})
}

// leaseForever leases the state like the azurerm backend does, without a description.
func leaseForever(t *testing.T, w *world, id string) {
	t.Helper()
	l, err := sdklease.NewBlobClient(w.service.BlockBlob("tfstate", "prod"), &sdklease.BlobClientOptions{LeaseID: &id})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := l.AcquireLease(t.Context(), -1, nil); err != nil {
		t.Fatal(err)
	}
}
