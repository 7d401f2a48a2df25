package tfstate

import (
	"bytes"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/azconc/azconc/pkg/aztest"
	"github.com/azconc/azconc/pkg/aztest/bubble"
)

// The requests of a first apply and of a second one, with what clients require of the answers. Neither bytes nor metadata of other
// writers change.
func TestAnApply(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		v, _ := w.run()
		c := newClient(t, v, adas, "ada@ci")
		for _, want := range []string{"one", "onetwo"} {
			if err := c.apply(want[len(want)-3:]); err != nil {
				t.Fatal(err, w.notes)
			}
			if got := w.state(); got != want || w.leased() {
				t.Fatalf("%q, leased %t, want %q", got, w.leased(), want)
			}
		}
		if id, lost := v.session.Close(); id != "" || lost != nil || len(w.notes) > 0 || w.losses() > 0 {
			t.Errorf("left %q, notes %v, lost %v", id, w.notes, w.lost)
		}
	})
}

// TestTheProtocolRowByRow has the rows of the protocol that differ from what one would expect. Each comes after a lock of ada's on
// the state "old", which she has read.
func TestTheProtocolRowByRow(t *testing.T) {
	for _, row := range []struct {
		name  string
		do    func(c *client, w *world) (reply, error)
		want  int
		state string
		held  bool
		note  string
	}{
		{"LOCK again with the holder's ID", func(c *client, _ *world) (reply, error) {
			return c.do("LOCK", lockPath, c.info)
		}, 200, "old", true, ""},
		{"LOCK with another ID", func(c *client, _ *world) (reply, error) {
			bob := newClient(c.t, c.server, bobs, "bob@ci")
			err := bob.lock()
			if l, ok := errors.AsType[*lockedError](err); !ok || l.holder.ID != adas || l.holder.Who != "ada@ci" || l.holder.Path != "tfstate/prod" {
				return reply{}, fmt.Errorf("bob got %w", err)
			}
			return reply{status: 423}, nil
		}, 423, "old", true, "locked by ada@ci"},
		{"LOCK without an ID", func(c *client, _ *world) (reply, error) {
			return c.do("LOCK", lockPath, []byte(`{"Who":"x"}`))
		}, 400, "old", true, "not a GUID"},
		{"GET while locked", func(c *client, _ *world) (reply, error) {
			r, err := c.do("GET", statePath, nil)
			if string(r.body) != "old" {
				err = fmt.Errorf("got %q", r.body)
			}
			return r, err
		}, 200, "old", true, ""},
		{"POST", func(c *client, _ *world) (reply, error) {
			return c.do("POST", statePath+"?ID="+adas, []byte("new"))
		}, 200, "new", true, ""},
		{"POST twice, of the same bytes", func(c *client, _ *world) (reply, error) {
			if r, err := c.do("POST", statePath+"?ID="+adas, []byte("new")); err != nil || r.status != 200 {
				return r, err
			}
			return c.do("POST", statePath+"?ID="+adas, []byte("new"))
		}, 200, "new", true, ""},
		{"POST of bytes that are no JSON", func(c *client, _ *world) (reply, error) {
			return c.do("POST", statePath+"?ID="+adas, []byte("\x00\xff"))
		}, 200, "\x00\xff", true, ""},
		{"POST without an ID while locked", func(c *client, _ *world) (reply, error) {
			return c.do("POST", statePath, []byte("new"))
		}, 423, "old", true, "locked by ada@ci"},
		{"POST with an ID that is not the lock's", func(c *client, _ *world) (reply, error) {
			return c.do("POST", statePath+"?ID="+bobs, []byte("new"))
		}, 423, "old", true, "locked by ada@ci"},
		{"POST that is cut off", func(c *client, _ *world) (reply, error) {
			return c.cutOff("new"), nil
		}, 400, "old", true, "cut off"},
		{"POST after UNLOCK", func(c *client, _ *world) (reply, error) {
			if err := c.unlock(); err != nil {
				return reply{}, err
			}
			return c.do("POST", statePath+"?ID="+adas, []byte("new"))
		}, 409, "old", false, "is not held"},
		{"UNLOCK", func(c *client, _ *world) (reply, error) {
			return c.do("UNLOCK", unlockPath, c.info)
		}, 200, "old", false, ""},
		{"UNLOCK again", func(c *client, _ *world) (reply, error) {
			if err := c.unlock(); err != nil {
				return reply{}, err
			}
			return c.do("UNLOCK", unlockPath, c.info)
		}, 200, "old", false, ""},
		{"UNLOCK without a body, Terraform's force-unlock", func(c *client, _ *world) (reply, error) {
			return c.do("UNLOCK", unlockPath, nil)
		}, 409, "old", true, "azconc tf unlock tfstate/prod"},
		{"UNLOCK of another ID", func(c *client, _ *world) (reply, error) {
			return c.do("UNLOCK", unlockPath, []byte(`{"ID":"`+bobs+`","Created":"0001-01-01T00:00:00Z"}`))
		}, 409, "old", true, "azconc tf show tfstate/prod"},
		{"DELETE", func(c *client, _ *world) (reply, error) {
			return c.do("DELETE", statePath, nil)
		}, 405, "old", true, "not a request"},
		{"a wrong password", func(c *client, _ *world) (reply, error) {
			return c.withPassword("x"), nil
		}, 401, "old", true, ""},
	} {
		t.Run(row.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w := newWorld(t)
				w.put("old")
				v, _ := w.run()
				defer v.session.Close()
				c := newClient(t, v, adas, "ada@ci")
				if err := c.lock(); err != nil {
					t.Fatal(err)
				}
				if _, err := c.get(); err != nil {
					t.Fatal(err)
				}
				r, err := row.do(c, w)
				if err != nil || r.status != row.want {
					t.Errorf("%d, %v, want %d", r.status, err, row.want)
				}
				if got := w.state(); got != row.state || w.leased() != row.held {
					t.Errorf("the state is %q, locked %t", got, w.leased())
				}
				if notes := strings.Join(w.notes, "\n"); row.note == "" && notes != "" || !strings.Contains(notes, row.note) {
					t.Errorf("notes %q, want %q", notes, row.note)
				}
			})
		})
	}
}

// withPassword sends a GET with a password.
func (c *client) withPassword(password string) reply {
	r, _ := http.NewRequestWithContext(c.t.Context(), "GET", statePath, nil)
	r.SetBasicAuth(c.server.user, password)
	a := c.server.serve(r)
	return reply{a.status, a.body}
}

// cutOff sends a POST whose body is shorter than announced.
func (c *client) cutOff(body string) reply {
	r, _ := http.NewRequestWithContext(c.t.Context(), "POST", statePath+"?ID="+c.id, bytes.NewReader([]byte(body)))
	r.SetBasicAuth(c.server.user, c.server.password)
	r.ContentLength = 7
	a := c.server.serve(r)
	return reply{a.status, a.body}
}

// With -lock=false there is no LOCK and no ID. Conditions hold all the same.
func TestAClientThatDoesNotLock(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		one, _ := w.run()
		two, _ := w.run()
		a, b := newClient(t, one, adas, "ada@ci"), newClient(t, two, bobs, "bob@ci")
		a.info, b.info = nil, nil
		if err := a.post("unread"); err == nil || !strings.Contains(err.Error(), "428") {
			t.Errorf("a POST without a GET: %v", err)
		}
		for _, c := range []*client{a, b} {
			if _, err := c.get(); err != nil {
				t.Fatal(err)
			}
		}
		if err := a.post("a's"); err != nil {
			t.Fatal(err, w.notes)
		}
		if err := b.post("b's"); err == nil || w.state() != "a's" {
			t.Errorf("b has overwritten what it had not read: %v, %q", err, w.state())
		}
		if err := b.post("a's"); err != nil {
			t.Errorf("bytes that are stored already: %v", err)
		}
		locker := newClient(t, one, adas, "ada@ci")
		if err := locker.lock(); err != nil {
			t.Fatal(err)
		}
		if _, err := b.get(); err != nil {
			t.Fatal(err)
		}
		if err := b.post("b's"); err == nil || !strings.Contains(err.Error(), "423") || w.state() != "a's" {
			t.Errorf("a write under another run's lock: %v, %q", err, w.state())
		}
		one.session.Close()
	})
}

// Two at once: one works, and the other learns who holds it, as often as it asks (terraform -lock-timeout), until it is its turn.
func TestTwoAtOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		one, _ := w.run()
		two, _ := w.run()
		a, b := newClient(t, one, adas, "ada@ci"), newClient(t, two, bobs, "bob@ci")
		if err := a.lock(); err != nil {
			t.Fatal(err)
		}
		for range 3 {
			bubble.Sleep(40 * time.Second) // the lock is renewed
			if l, ok := errors.AsType[*lockedError](b.lock()); !ok || l.holder.Who != "ada@ci" || l.holder.ID != adas {
				t.Fatalf("bob got %v", l)
			}
		}
		if _, err := a.get(); err != nil {
			t.Fatal(err)
		}
		if err := errors.Join(a.post("a"), a.unlock(), b.apply("bb")); err != nil || w.state() != "abb" {
			t.Errorf("%v, %q", err, w.state())
		}
	})
}

// An answer to a run that nobody has described, or that some other program holds, is still one that clients can wait for.
func TestAHolderThatIsNotDescribed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		w.put("old")
		leaseForever(t, w, adas)
		v, _ := w.run()
		for range 3 { // as often as a client asks that waits
			if l, ok := errors.AsType[*lockedError](newClient(t, v, bobs, "bob@ci").lock()); !ok || l.holder.ID == "" {
				t.Errorf("%v", l)
			}
		}
		if notes := strings.Join(w.notes, "\n"); strings.Count(notes, "azconc tf unlock") != 1 {
			t.Errorf("notes %q", notes)
		}
	})
}

// A holder whose name has line breaks and escape sequences would print messages of its own into the log of another run.
func TestANoteIsOneLineWhateverTheHolderIsCalled(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		w.put("old")
		v, _ := w.run()
		a := newClient(t, v, adas, "ada\nazconc: the state was written\x1b[2J\u009b1m")
		if err := a.lock(); err != nil {
			t.Fatal(err)
		}
		if newClient(t, v, bobs, "bob@ci").post("new") == nil {
			t.Error("the state was written without the lock")
		}
		notes := strings.Join(w.notes, "|")
		if !strings.Contains(notes, "locked by ada azconc") || strings.ContainsAny(notes, "\n\x1b\u009b") {
			t.Errorf("notes %q", notes)
		}
		if err := a.unlock(); err != nil {
			t.Error(err)
		}
	})
}

// The version before the first write of each lock is kept.
func TestTheVersionBeforeIsKept(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		w.put("old")
		v, _ := w.run()
		c := newClient(t, v, adas, "ada@ci")
		if err := errors.Join(c.apply("one"), c.apply("two")); err != nil {
			t.Fatal(err)
		}
		taken := 0
		for _, r := range w.service.Log() {
			if r.Op == "Snapshot Blob" {
				taken++
			}
		}
		if taken != 2 {
			t.Errorf("%d snapshots, want 2", taken)
		}
	})
}

// A state is stored although no snapshot of it may be taken.
func TestAStateIsStoredAlthoughItsVersionBeforeCannotBeKept(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		w.put("old")
		w.service.SetFaults(aztest.Fault{Kind: aztest.Answer, Status: 403, Code: "AuthorizationPermissionMismatch", Match: aztest.Op("Snapshot Blob")})
		v, _ := w.run()
		if err := newClient(t, v, adas, "ada@ci").apply("one"); err != nil || w.state() != "oldone" {
			t.Errorf("%v, %q", err, w.state())
		}
		if notes := strings.Join(w.notes, "\n"); !strings.Contains(notes, "not kept") {
			t.Errorf("notes %q", notes)
		}
	})
}

func TestAContainerThatIsMissingIsNotAStateThatIsMissing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := &world{t: t, service: aztest.New(nil)}
		v, _ := w.run()
		c := newClient(t, v, adas, "ada@ci")
		if _, err := c.get(); err == nil {
			t.Error("a GET found no state, where there is no container")
		}
		if err := c.lock(); err == nil {
			t.Error("locked in a container that does not exist")
		}
	})
}

// Terraform reads before it locks, too. What it has read counts if nobody has written since; a lock alone changes nothing.
func TestAStateThatWasReadBeforeItWasLocked(t *testing.T) {
	for _, changed := range []bool{false, true} {
		for _, lost := range []bool{false, true} {
			synctest.Test(t, func(t *testing.T) {
				w := newWorld(t)
				w.put("old")
				v, _ := w.run()
				c := newClient(t, v, adas, "ada@ci")
				if _, err := c.get(); err != nil {
					t.Fatal(err)
				}
				if changed {
					w.put("theirs")
				}
				if lost {
					w.service.SetFaults(aztest.Fault{Kind: aztest.LoseAnswer, Match: aztest.Op("Set Blob Metadata"), Count: 1})
				}
				if err := c.lock(); err != nil {
					t.Fatal(err)
				}
				if err := c.post("new"); (err == nil) == changed || changed && w.state() != "theirs" || !changed && w.state() != "new" {
					t.Errorf("changed %t, lost %t: %v, %q", changed, lost, err, w.state())
				}
				v.session.Close()
			})
		}
	}
}

// TestWhoHoldsTheLockIsSaidOnce: Terraform shows its own name in place of the holder's.
func TestWhoHoldsTheLockIsSaidOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		one, _ := w.run()
		two, _ := w.run()
		a, b := newClient(t, one, adas, "ada@ci"), newClient(t, two, bobs, "bob@ci")
		if err := a.lock(); err != nil {
			t.Fatal(err)
		}
		for range 3 {
			if b.lock() == nil {
				t.Fatal("locked twice")
			}
		}
		if len(w.notes) != 1 || !strings.Contains(w.notes[0], "locked by ada@ci (OperationTypeApply, ID "+adas) || !strings.Contains(w.notes[0], "ends with its run") {
			t.Errorf("notes %q", w.notes)
		}
		if err := a.unlock(); err != nil {
			t.Error(err)
		}
	})
}
