package tfstate

import (
	"bytes"
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore/to"
	"github.com/Azure/azure-sdk-for-go/sdk/storage/azblob/blob"
	"github.com/Azure/azure-sdk-for-go/sdk/storage/azblob/bloberror"
	"github.com/Azure/azure-sdk-for-go/sdk/storage/azblob/blockblob"
	"github.com/Azure/azure-sdk-for-go/sdk/storage/azblob/lease"

	"github.com/azconc/azconc/pkg/aztest"
	"github.com/azconc/azconc/pkg/aztest/bubble"
	"github.com/azconc/azconc/pkg/ptr"
)

// azurerm is a run with the azurerm backend: it sends what the backend of OpenTofu 1.12.6 sends, in the same order
// (internal/backend/remote-state/azure/client.go). TestOpenTofuWithAzurerm… have the backend itself.
type azurerm struct {
	blob  *blockblob.Client
	info  Info // of its lock
	lease *string

	sent   int // requests so far
	killAt int // it is killed before this request; 0: never
}

// azurermKey is where the backend describes the holder of its lock.
const azurermKey = "terraformlockid"

func newAzurerm(w *world, id, who string) *azurerm {
	return &azurerm{blob: w.service.BlockBlob("tfstate", "prod"), info: Info{ID: id, Operation: "OperationTypeApply", Who: who, Version: "1.12.6",
		Created: time.Now().UTC().Format(time.RFC3339Nano), Path: "https://contoso.blob.core.windows.net/tfstate/prod"}}
}

func (c *azurerm) dead() error {
	if c.sent++; c.sent == c.killAt {
		return errKilled
	}
	return nil
}

func (c *azurerm) underLease() *blob.AccessConditions {
	return &blob.AccessConditions{LeaseAccessConditions: &blob.LeaseAccessConditions{LeaseID: c.lease}}
}

// properties returns the metadata, with names in lower case.
func (c *azurerm) properties(ctx context.Context) (blob.GetPropertiesResponse, map[string]*string, error) {
	if err := c.dead(); err != nil {
		return blob.GetPropertiesResponse{}, nil, err
	}
	p, err := c.blob.GetProperties(ctx, &blob.GetPropertiesOptions{AccessConditions: c.underLease()})
	metadata := map[string]*string{}
	for name, value := range p.Metadata {
		metadata[strings.ToLower(name)] = value
	}
	return p, metadata, err
}

func (c *azurerm) upload(ctx context.Context, state []byte, metadata map[string]*string) error {
	if err := c.dead(); err != nil {
		return err
	}
	_, err := c.blob.UploadBuffer(ctx, state, &blockblob.UploadBufferOptions{Metadata: metadata, AccessConditions: c.underLease(),
		HTTPHeaders: &blob.HTTPHeaders{BlobContentType: to.Ptr("application/json")}})
	return err
}

func (c *azurerm) setInfo(ctx context.Context, info *string) error {
	_, metadata, err := c.properties(ctx)
	if err != nil {
		return err
	}
	delete(metadata, azurermKey)
	if info != nil {
		metadata[azurermKey] = info
	}
	if err := c.dead(); err != nil {
		return err
	}
	_, err = c.blob.SetMetadata(ctx, metadata, &blob.SetMetadataOptions{AccessConditions: c.underLease()})
	return err
}

func (c *azurerm) lock(ctx context.Context) error {
	p, _, err := c.properties(ctx)
	if bloberror.HasCode(err, bloberror.BlobNotFound) {
		err = c.upload(ctx, nil, nil)
	}
	if err != nil {
		return err
	}
	if ptr.Value(p.LeaseStatus) == lease.StatusTypeLocked {
		return c.heldByAnother(ctx)
	}
	l, err := lease.NewBlobClient(c.blob, &lease.BlobClientOptions{LeaseID: &c.info.ID})
	if err == nil {
		err = c.dead()
	}
	if err != nil {
		return err
	}
	if _, err := l.AcquireLease(ctx, -1, nil); err != nil {
		return errors.Join(err, c.heldByAnother(ctx))
	}
	c.lease = &c.info.ID
	text, err := json.Marshal(c.info)
	if err != nil {
		return err
	}
	return c.setInfo(ctx, to.Ptr(base64.StdEncoding.EncodeToString(text)))
}

// holder reads the description of the holder, which must be one that the client can decode: otherwise it does not wait.
func (c *azurerm) holder(ctx context.Context) (Info, error) {
	_, metadata, err := c.properties(ctx)
	if err != nil {
		return Info{}, err
	}
	text, err := base64.StdEncoding.DecodeString(ptr.Value(metadata[azurermKey]))
	var held struct {
		Info
		Created time.Time
	}
	if err == nil {
		err = json.Unmarshal(text, &held)
	}
	if err != nil {
		return Info{}, fmt.Errorf("no holder: %w", err)
	}
	return held.Info, nil
}

func (c *azurerm) heldByAnother(ctx context.Context) error {
	held, err := c.holder(ctx)
	if err != nil {
		return err
	}
	return &lockedError{held}
}

func (c *azurerm) get(ctx context.Context) ([]byte, error) {
	if err := c.dead(); err != nil {
		return nil, err
	}
	r, err := c.blob.DownloadStream(ctx, &blob.DownloadStreamOptions{AccessConditions: c.underLease()})
	if err != nil {
		return nil, err
	}
	var b bytes.Buffer
	_, err = b.ReadFrom(r.Body)
	return b.Bytes(), errors.Join(err, r.Body.Close())
}

func (c *azurerm) put(ctx context.Context, state []byte) error {
	_, metadata, err := c.properties(ctx)
	if err != nil {
		return err
	}
	return c.upload(ctx, state, metadata)
}

func (c *azurerm) unlock(ctx context.Context) error {
	held, err := c.holder(ctx)
	switch {
	case err != nil:
		return err
	case held.ID != c.info.ID:
		return fmt.Errorf("lock id %q does not match existing lock", c.info.ID)
	}
	c.lease = &c.info.ID
	if err := c.setInfo(ctx, nil); err != nil {
		return err
	}
	l, err := lease.NewBlobClient(c.blob, &lease.BlobClientOptions{LeaseID: c.lease})
	if err == nil {
		err = c.dead()
	}
	if err == nil {
		_, err = l.ReleaseLease(ctx, nil)
	}
	c.lease = nil
	return err
}

// apply appends a word to the state, in one step.
func (c *azurerm) apply(ctx context.Context, word string) error {
	err := c.lock(ctx)
	if err != nil {
		return err
	}
	state, err := c.get(ctx)
	if err == nil {
		err = c.put(ctx, append(state, word...))
	}
	if errors.Is(err, errKilled) {
		return err
	}
	return errors.Join(err, c.unlock(ctx))
}

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
					err = BreakUnnamed(ctx, ada.blob.BlobClient(), l.ETag)
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
