package tfstate

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/azconc/azconc/pkg/aztest"
)

// A run that was refused has raised the serial of its state with each write, so the client's own push was accepted and the resources of
// the run that had written meanwhile were forgotten.
func TestAStateThatWasLeftIsPushedOnlyOverTheOneThatItsRunHadRead(t *testing.T) {
	for _, row := range []struct {
		meanwhile string // what the state is by now
		stored    string
		moved     bool
	}{
		{meanwhile: "aa", stored: "aabb"},
		{meanwhile: "aabb", stored: "aabb"},
		{meanwhile: "aacc", stored: "aacc", moved: true},
	} {
		t.Run(row.meanwhile, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w := newWorld(t)
				w.put("aa")
				ada, _ := w.run()
				a := newClient(t, ada, adas, "ada@ci")
				if err := a.lock(); err != nil {
					t.Fatal(err)
				}
				if _, err := a.get(); err != nil {
					t.Fatal(err)
				}
				if err := Release(t.Context(), ada.session.client, adas); err != nil {
					t.Fatal(err)
				}
				if err := a.post("aabb"); err == nil {
					t.Fatal("a write was accepted after the lock was released by another client")
				}
				_, lost := ada.session.Close()
				read, unstored := ada.session.Unstored()
				if string(read) != "aa" || !unstored || lost == nil {
					t.Fatalf("read %q, unstored %t, lost %v", read, unstored, lost)
				}
				w.put(row.meanwhile)
				bob, _ := w.run()
				already, err := bob.session.Push(read, []byte("aabb"), "bob@ci")
				if errors.Is(err, ErrMoved) != row.moved || !row.moved && err != nil || already != (row.meanwhile == "aabb") {
					t.Errorf("already %t, %v", already, err)
				}
				if got := w.state(); got != row.stored || w.leased() {
					t.Errorf("the state is %q, leased %t, want %q", got, w.leased(), row.stored)
				}
				bob.session.Close()
			})
		})
	}
}

// A write that succeeds in the end leaves nothing behind.
func TestNothingIsUnstoredAfterASuccess(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		w.put("aa")
		v, _ := w.run()
		c := newClient(t, v, adas, "ada@ci")
		if err := c.apply("bb"); err != nil {
			t.Fatal(err)
		}
		v.session.Close()
		if read, unstored := v.session.Unstored(); unstored {
			t.Errorf("unstored over %q", read)
		}
	})
}

// Whatever answer is lost, a push stores the state once or reports that another run holds the lock, and leaves no lock.
func TestAPushWithALostAnswer(t *testing.T) {
	for n := range 12 {
		t.Run(fmt.Sprint(n), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w := newWorld(t)
				w.put("aa")
				v, wire := w.wired()
				wire.SetFaults(aztest.Fault{Kind: aztest.LoseAnswer, Skip: n, Count: 1})
				_, err := v.session.Push([]byte("aa"), []byte("aabb"), "bob@ci")
				if got := w.state(); err != nil || got != "aabb" || w.leased() {
					t.Errorf("%v: %q, leased %t", err, got, w.leased())
				}
				v.session.Close()
			})
		})
	}
}

// The version before was not kept after one connection that was reset, although the write itself waits for five minutes.
func TestTheVersionBeforeIsKeptAfterAnOutage(t *testing.T) {
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
		time.AfterFunc(20*time.Second, resume)
		if err := c.post("aabb"); err != nil {
			t.Fatal(err)
		}
		if err := c.unlock(); err != nil {
			t.Fatal(err)
		}
		for _, note := range w.notes {
			if strings.Contains(note, "not kept") {
				t.Error(note)
			}
		}
		v.session.Close()
	})
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
