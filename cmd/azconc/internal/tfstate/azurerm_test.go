package tfstate

import (
	"errors"
	"net/http"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore/policy"
	"github.com/Azure/azure-sdk-for-go/sdk/azcore/to"
	"github.com/Azure/azure-sdk-for-go/sdk/storage/azblob/bloberror"
	"github.com/Azure/azure-sdk-for-go/sdk/storage/azblob/container"

	"github.com/azconc/azconc/pessimistic"
	"github.com/azconc/azconc/pkg/aztest"
	"github.com/azconc/azconc/pkg/aztest/bubble"
	"github.com/azconc/azconc/pkg/ptr"
)

// TestAzurermAndAzconcTakeTurns on one state, from its first lock on, while one answer in five is lost to azconc: each reads what the
// other has stored, byte by byte, and nothing else in the blob changes.
func TestAzurermAndAzconcTakeTurns(t *testing.T) {
	for name, first := range map[string]int{"azurerm creates it": 0, "azconc creates it": 1} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w := newWorld(t)
				want := ""
				for turn := first; turn < first+8; turn++ {
					word := string(rune('a'+turn)) + "\n\t{"
					if turn%2 == 0 {
						if err := newAzurerm(w, adas, "ada@ci").apply(t.Context(), word); err != nil {
							t.Fatal(turn, err)
						}
					} else {
						v, lossy := w.lossy()
						if err := newClient(t, v, bobs, "bob@ci").apply(word); err != nil {
							t.Fatal(turn, err)
						}
						v.session.Close()
						lossy()
					}
					if want += word; w.state() != want || w.leased() {
						t.Fatalf("turn %d: %q, leased %t, want %q", turn, w.state(), w.leased(), want)
					}
					p, metadata, err := newAzurerm(w, adas, "ada@ci").properties(t.Context())
					if err != nil || ptr.Value(p.ContentType) != "application/json" || metadata[azurermKey] != nil {
						t.Errorf("turn %d: %v, %q, %v", turn, err, ptr.Value(p.ContentType), metadata)
					}
					if turn == first {
						if _, err := w.service.BlockBlob("tfstate", "prod").SetMetadata(t.Context(), map[string]*string{"team": to.Ptr("ops")}, nil); err != nil {
							t.Fatal(err)
						}
					} else if ptr.Value(metadata["team"]) != "ops" {
						t.Errorf("turn %d: the metadata of others are lost: %v", turn, metadata)
					}
				}
			})
		})
	}
}

// lossy begins a run to which one answer in five of the service is lost. stop ends that.
func (w *world) lossy() (v *Server, stop func()) {
	v, wire := w.wired()
	wire.SetFaults(aztest.Fault{Kind: aztest.LoseAnswer, Probability: 0.2})
	return v, func() { wire.SetFaults() }
}

// TestAzurermAndAzconcLockEachOtherOut: each learns who the other is, in a form for which its client waits, and cannot write.
func TestAzurermAndAzconcLockEachOtherOut(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, w := t.Context(), newWorld(t)
		w.put("aa")
		v, kill := w.run()
		ada, bob := newAzurerm(w, adas, "ada@ci"), newClient(t, v, bobs, "bob@ci")

		if err := ada.lock(ctx); err != nil {
			t.Fatal(err)
		}
		if held, ok := errors.AsType[*lockedError](bob.lock()); !ok || held.holder.Who != "ada@ci" || held.holder.ID != adas {
			t.Errorf("azconc is locked out by %v", held)
		}
		unlocked := newClient(t, v, bobs, "bob@ci")
		unlocked.info = nil // -lock=false
		if err := unlocked.apply("bb"); err == nil || w.state() != "aa" {
			t.Errorf("azconc writes under azurerm's lock: %v, %q", err, w.state())
		}
		if err := errors.Join(ada.put(ctx, []byte("aaaa")), ada.unlock(ctx)); err != nil {
			t.Fatal(err)
		}

		if err := bob.lock(); err != nil {
			t.Fatal(err)
		}
		if held, ok := errors.AsType[*lockedError](ada.lock(ctx)); !ok || held.holder.Who != "bob@ci" || held.holder.ID != bobs {
			t.Errorf("azurerm is locked out by %v", held)
		}
		if err := ada.put(ctx, []byte("stale")); !bloberror.HasCode(err, bloberror.LeaseIDMissing) {
			t.Errorf("azurerm writes under azconc's lock: %v", err)
		}
		bubble.Sleep(5 * time.Minute) // it is renewed
		if _, ok := errors.AsType[*lockedError](ada.lock(ctx)); !ok {
			t.Error("azurerm is not locked out any more")
		}
		kill()
		bubble.Sleep(time.Minute)
		if err := ada.apply(ctx, "cc"); err != nil || w.state() != "aaaacc" {
			t.Errorf("after a minute, azurerm: %v, %q", err, w.state())
		}
	})
}

// TestAzurermForceUnlocksAzconc: the run that is unlocked learns so and cannot overwrite what azurerm writes next.
func TestAzurermForceUnlocksAzconc(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, w := t.Context(), newWorld(t)
		w.put("aa")
		v, _ := w.run()
		bob := newClient(t, v, bobs, "bob@ci")
		if err := bob.lock(); err != nil {
			t.Fatal(err)
		}
		if _, err := bob.get(); err != nil {
			t.Fatal(err)
		}
		if err := newAzurerm(w, bobs, "").unlock(ctx); err != nil { // force-unlock has the ID and nothing else
			t.Fatal(err)
		}
		if err := newAzurerm(w, adas, "ada@ci").apply(ctx, "cc"); err != nil {
			t.Fatal(err)
		}
		if err := bob.post("stale"); err == nil || w.state() != "aacc" {
			t.Errorf("the run that was unlocked wrote: %v, %q", err, w.state())
		}
		bubble.Sleep(time.Minute)
		if w.losses() == 0 {
			t.Error("the run that was unlocked was not stopped")
		}
		v.session.Close()
	})
}

// onRequest looks on before each request is carried out.
type onRequest struct {
	policy.Transporter
	look func(op string)
}

func (o onRequest) Do(r *http.Request) (*http.Response, error) {
	o.look(r.Method + " " + r.URL.Query().Get("comp"))
	return o.Transporter.Do(r)
}

// TestAReleaseLeavesNoLockWithoutADescription: an azurerm that waits for the lock, and looks between any two requests of azconc tf unlock,
// or of an UNLOCK, always learns who holds it. It would end at a lock that is not described, in place of waiting on.
func TestAReleaseLeavesNoLockWithoutADescription(t *testing.T) {
	for name, hold := range map[string]func(*world, *container.Client) (release func() error){
		"tf unlock": func(w *world, c *container.Client) func() error {
			if err := newAzurerm(w, adas, "ada@ci").lock(w.t.Context()); err != nil {
				w.t.Fatal(err)
			}
			return func() error { return Release(w.t.Context(), c.NewBlobClient("prod"), adas) }
		},
		"UNLOCK": func(w *world, c *container.Client) func() error {
			s := New(w.t.Context(), c, "prod", Options{Name: "tfstate/prod", Duration: 45 * time.Second})
			w.t.Cleanup(func() { s.close() })
			ada := newClient(w.t, newServer(s), adas, "ada@ci")
			if err := ada.lock(); err != nil {
				w.t.Fatal(err)
			}
			return ada.unlock
		},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w := newWorld(t)
				w.put("aa")
				var ops []string
				releases := false
				opts := w.service.ClientOptions()
				opts.Transport = onRequest{w.service, func(op string) {
					if !releases {
						return
					}
					ops = append(ops, op)
					if _, err := newAzurerm(w, bobs, "bob@ci").holder(t.Context()); w.leased() && err != nil {
						t.Errorf("before the last of %q: %v", ops, err)
					}
				}}
				c := containerOf(t, opts)
				release := hold(w, c)
				releases = true
				if err := release(); err != nil || w.leased() {
					t.Errorf("leased %t, %v", w.leased(), err)
				}
				if want := []string{"PUT lease", "HEAD ", "PUT metadata"}; !slices.Equal(ops, want) {
					t.Errorf("requests: %q, want %q", ops, want)
				}
				if l, err := Look(t.Context(), c.NewBlobClient("prod")); err != nil || !errors.Is(l.Problem, ErrNoInfo) {
					t.Errorf("%+v is left, %v", l, err)
				}
			})
		})
	}
}

// TestAzurermKilledAtEveryRequest: whatever it leaves, nothing in the state is lost or torn, and azconc tf unlock frees it.
func TestAzurermKilledAtEveryRequest(t *testing.T) {
	for n := 1; ; n++ {
		over := false
		synctest.Test(t, func(t *testing.T) {
			ctx, w := t.Context(), newWorld(t)
			w.put("aa")
			ada := newAzurerm(w, adas, "ada@ci")
			ada.killAt = n
			err := ada.apply(ctx, "bb")
			if over = err == nil; over {
				return
			}
			state := w.state()
			if !errors.Is(err, errKilled) || state != "aa" && state != "aabb" {
				t.Fatalf("killed at request %d: %v, %q", n, err, state)
			}
			bubble.Sleep(24 * time.Hour)
			l, err := Look(ctx, ada.blob.BlobClient())
			if err != nil {
				t.Fatal(err)
			}
			if l.Held {
				if !l.Infinite() {
					t.Errorf("killed at request %d: %+v", n, l)
				}
				if errors.Is(l.Problem, ErrNoInfo) {
					_, err = pessimistic.Break(ctx, pessimistic.NewBlob(ada.blob.BlobClient()), &pessimistic.BreakOptions{Now: true})
				} else {
					err = Release(ctx, ada.blob.BlobClient(), l.Info.ID)
				}
			}
			if err != nil || w.leased() {
				t.Errorf("killed at request %d: %v, leased %t, %+v", n, err, w.leased(), l)
			}
			v, _ := w.run()
			if err := newClient(t, v, bobs, "bob@ci").apply("cc"); err != nil || w.state() != state+"cc" {
				t.Errorf("killed at request %d, the next run: %v, %q", n, err, w.state())
			}
			v.session.Close()
			if err := newAzurerm(w, adas, "ada@ci").apply(ctx, "dd"); err != nil || w.state() != state+"ccdd" {
				t.Errorf("killed at request %d, azurerm: %v, %q", n, err, w.state())
			}
		})
		if over {
			if n != 12 {
				t.Errorf("an apply has %d requests, want 11", n-1)
			}
			return
		}
	}
}
