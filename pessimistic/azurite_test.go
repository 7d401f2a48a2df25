package pessimistic

import (
	"context"
	"errors"
	"net/http"
	"sync"
	"testing"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore/policy"
	"github.com/Azure/azure-sdk-for-go/sdk/data/aztables"
	"github.com/Azure/azure-sdk-for-go/sdk/storage/azblob/container"

	"github.com/azconc/azconc/optimistic"
	"github.com/azconc/azconc/optimistic/blobs"
	"github.com/azconc/azconc/optimistic/tables"
	"github.com/azconc/azconc/pkg/aztest"
	"github.com/azconc/azconc/pkg/azurite"
	"github.com/azconc/azconc/pkg/azurite/azuritetest"
	"github.com/azconc/azconc/pkg/fence"
	"github.com/azconc/azconc/pkg/lease"
)

// real is a real Azurite, with faults before it.
type real struct {
	account azurite.Account
	options policy.ClientOptions
	box     *container.Client
}

func onAzurite(t *testing.T, faults ...aztest.Fault) real {
	t.Helper()
	account := azuritetest.Account(t)
	pool := &http.Transport{MaxIdleConnsPerHost: 64}
	t.Cleanup(pool.CloseIdleConnections)
	injector := aztest.Inject(&http.Client{Transport: pool}, 1)
	credential, err := container.NewSharedKeyCredential(account.Name, account.Key)
	if err != nil {
		t.Fatal(err)
	}
	r := real{account: account, options: policy.ClientOptions{Transport: injector}}
	r.box, err = container.NewClientWithSharedKeyCredential(account.BlobURL+"/box", credential, &container.ClientOptions{ClientOptions: r.options})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := r.box.Create(t.Context(), nil); err != nil {
		t.Fatal(err)
	}
	injector.SetFaults(faults...)
	return r
}

func (r real) locker(t *testing.T, opts *LockerOptions) *Locker {
	t.Helper()
	k, err := NewLocker(r.box, opts)
	if err != nil {
		t.Fatal(err)
	}
	return k
}

func TestLocksOnAzurite(t *testing.T) {
	r := onAzurite(t)
	one, two := r.locker(t, &LockerOptions{Owner: "one"}), r.locker(t, &LockerOptions{Owner: "two", Poll: pollEvery(100 * time.Millisecond)})
	first := locked(t, one, "job", nil)
	if _, err := two.TryLock(t.Context(), "job"); !errors.Is(err, ErrHeld) {
		t.Errorf("err = %v", err)
	}
	info, err := two.Show(t.Context(), "job")
	if err != nil || !info.Held || info.Owner != "one" || info.ETag != first.ETag() || info.Fence != first.Fence() {
		t.Errorf("shown %+v, %v", info, err)
	}
	for listed, err := range two.List(t.Context(), nil) {
		if err != nil || listed.ETag != info.ETag || !listed.Held {
			t.Errorf("listed %+v, %v", listed, err)
		}
	}
	if _, err := two.Break(t.Context(), "job", &BreakOptions{Conditions: lease.Conditions{IfMatch: `"0x1"`}, Now: true}); !errors.Is(err, ErrConflict) {
		t.Errorf("a stale break: %v", err)
	}
	if err := first.Verify(t.Context()); err != nil {
		t.Errorf("after a stale break: %v", err)
	}
	if _, err := two.Break(t.Context(), "job", &BreakOptions{Conditions: lease.Conditions{IfMatch: info.ETag}, Now: true}); err != nil {
		t.Fatal(err)
	}
	if err := first.Verify(t.Context()); !errors.Is(err, ErrLost) {
		t.Errorf("the holder of the broken lock got %v", err)
	}
	second := locked(t, two, "job", nil)
	if second.Fence() <= first.Fence() || second.Previous().Ended != EndedByBreak || second.Previous().Owner != "one" {
		t.Errorf("fence %d after %d, previous %+v", second.Fence(), first.Fence(), second.Previous())
	}
	_ = first.Release(t.Context())
	if err := second.Verify(t.Context()); err != nil {
		t.Errorf("the release of the one before has hit the next: %v", err)
	}
	mustRelease(t, second.lease)
	if got, err := one.GC(t.Context(), nil); err != nil || got.Seen != 1 || got.Deleted != 0 {
		t.Errorf("collected %+v, %v", got, err)
	}
}

// TestManyLockersOnAzuriteWithLostResponses has five processes with five goroutines each count in a file of theirs,
// which only works if one at a time does.
func TestManyLockersOnAzuriteWithLostResponses(t *testing.T) {
	if testing.Short() {
		t.Skip("SKIP: other tests ask Azurite, and this is a short run")
	}
	r := onAzurite(t, aztest.Fault{Kind: aztest.LoseAnswer, Probability: 0.1}, aztest.Fault{Kind: aztest.LoseRequest, Probability: 0.05})
	var all sync.WaitGroup
	var mu sync.Mutex
	var fences []fence.Token
	inside, n := 0, 0
	for range 5 {
		k := r.locker(t, &LockerOptions{Poll: pollEvery(50 * time.Millisecond)})
		for range 5 {
			all.Go(func() {
				err := k.Do(t.Context(), "job", nil, func(_ context.Context, h *Hold) error {
					mu.Lock()
					inside++
					fences = append(fences, h.Fence())
					if inside != 1 {
						t.Errorf("%d at once", inside)
					}
					was := n
					mu.Unlock()
					err := h.Verify(context.Background())
					mu.Lock()
					defer mu.Unlock()
					n = was + 1
					inside--
					if errors.Is(err, ErrLost) {
						return err
					}
					return nil // an answer that was lost says nothing
				})
				if err != nil {
					t.Error(err)
				}
			})
		}
	}
	all.Wait()
	if n != 25 || !strictlyGrowing(fences) {
		t.Errorf("n = %d, fences %v", n, fences)
	}
}

func TestFencedWritesOnAzurite(t *testing.T) {
	r := onAzurite(t)
	k := r.locker(t, nil)
	client := r.box.NewBlockBlobClient("ledger")
	credential, err := aztables.NewSharedKeyCredential(r.account.Name, r.account.Key)
	if err != nil {
		t.Fatal(err)
	}
	table, err := aztables.NewClientWithSharedKey(r.account.TableURL+"/ledger", credential, &aztables.ClientOptions{ClientOptions: r.options})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := table.CreateTable(t.Context(), nil); err != nil {
		t.Fatal(err)
	}
	write := map[string]func(h fence.Holder) error{
		"blob": func(h fence.Holder) error {
			_, err := optimistic.Update(t.Context(), blobs.Fenced(h, blobs.NewJSON[ledger](client)), func(_ context.Context, l *ledger) error {
				l.By = append(l.By, h.Fence())
				return nil
			}, &optimistic.UpdateOptions{Create: true})
			return err
		},
		"table": func(h fence.Holder) error {
			_, err := tables.Transact(t.Context(), table, "p", func(_ context.Context, tx *tables.Tx) error {
				return tx.Put("r", map[string]string{"by": h.Fence().String()})
			}, &tables.TransactOptions{Holder: h})
			return err
		},
	}
	early := locked(t, k, "job", nil)
	for name, do := range write {
		if err := do(early); err != nil {
			t.Fatalf("%s: %v", name, err)
		}
	}
	mustRelease(t, early.lease)
	late := locked(t, k, "job", nil)
	for name, do := range write {
		if err := do(late); err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		if err := do(early); !errors.Is(err, fence.ErrFenced) {
			t.Errorf("%s: the earlier holder got %v", name, err)
		}
	}
	mustRelease(t, late.lease)
}
