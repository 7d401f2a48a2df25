package pessimistic

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore/policy"
	"github.com/Azure/azure-sdk-for-go/sdk/data/aztables"
	"github.com/Azure/azure-sdk-for-go/sdk/storage/azblob/blob"
	"github.com/Azure/azure-sdk-for-go/sdk/storage/azblob/blockblob"

	"github.com/azconc/azconc/optimistic"
	"github.com/azconc/azconc/optimistic/blobs"
	"github.com/azconc/azconc/optimistic/tables"
	"github.com/azconc/azconc/pessimistic/internal/pesstest"
	"github.com/azconc/azconc/pkg/aztest"
	"github.com/azconc/azconc/pkg/aztest/bubble"
	"github.com/azconc/azconc/pkg/aztest/history"
	"github.com/azconc/azconc/pkg/fence"
)

// play is the history of a few processes that share one lock and write to one resource, some of them paused at the worst
// of moments: when a write has passed every check of theirs and is about to leave.
type play struct {
	w  *world
	mu sync.Mutex
	// fences in the order in which the locks were returned
	fences []fence.Token
	spans  []history.Hold // how long a holder was allowed to work
	claims []stampedAt    // by when a holder could rely on being the only one to write
	writes []stampedAt    // data writes, when the service carried them out
	paused int
}

type stampedAt struct {
	token fence.Token
	at    time.Time
}

// process is one of them. Its transport stands still while it is paused, whatever the contexts say: a process that is
// not running cannot give up.
type process struct {
	h     *play
	next  policy.Transporter
	rng   *rand.Rand
	mu    sync.Mutex
	fence fence.Token
	until time.Time
}

func (p *process) Do(r *http.Request) (*http.Response, error) {
	data := strings.Contains(r.URL.Path, "/ledger") || strings.Contains(r.URL.Path, "$batch")
	write := data && r.Method != http.MethodGet && r.Method != http.MethodHead
	p.mu.Lock()
	token := p.fence
	if write && p.rng.IntN(5) == 0 {
		p.until = time.Now().Add(time.Duration(p.rng.Int64N(int64(90 * time.Second))))
		p.h.pause()
	}
	until := p.until
	p.mu.Unlock()
	bubble.Sleep(time.Until(until))
	resp, err := p.next.Do(r.WithContext(context.WithoutCancel(r.Context())))
	if err == nil && write && carriedOut(resp) {
		p.h.wrote(token)
	}
	return resp, err
}

// carriedOut looks into the answer of an entity group transaction, which is 202 whatever became of it.
func carriedOut(resp *http.Response) bool {
	if resp.StatusCode != http.StatusAccepted {
		return resp.StatusCode < 300
	}
	text, err := io.ReadAll(resp.Body)
	resp.Body = io.NopCloser(bytes.NewReader(text))
	return err == nil && !bytes.Contains(text, []byte("HTTP/1.1 4")) && !bytes.Contains(text, []byte("HTTP/1.1 5"))
}

func (h *play) pause() {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.paused++
}

func (h *play) wrote(token fence.Token) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.writes = append(h.writes, stampedAt{token, time.Now()})
}

// ledger is the data: every write adds its fence.
type ledger struct {
	By []fence.Token `json:"by"`
}

// writer is a way to write under a lock. Claim runs before a holder relies on being alone.
type writer struct {
	name  string
	claim func(ctx context.Context, p *process, h *Hold) error
	write func(ctx context.Context, p *process, h *Hold) error
}

func (p *process) blob() *blockblob.Client {
	return p.h.w.ContainerOver(p).NewBlockBlobClient("ledger")
}

func (p *process) table() *aztables.Client {
	credential, err := aztables.NewSharedKeyCredential(aztest.Account, aztest.Key)
	if err != nil {
		p.h.w.T.Error(err)
	}
	client, err := aztables.NewClientWithSharedKey(p.h.w.Service.TableURL()+"/ledgers", credential,
		&aztables.ClientOptions{ClientOptions: policy.ClientOptions{Transport: p}})
	if err != nil {
		p.h.w.T.Error(err)
	}
	return client
}

func sign(h *Hold) func(context.Context, *ledger) error {
	return func(_ context.Context, l *ledger) error {
		l.By = append(l.By, h.Fence())
		return nil
	}
}

func leave(context.Context, *ledger) error { return nil }

var fencedBlob = writer{"blob with its fence",
	func(ctx context.Context, p *process, h *Hold) error {
		_, err := optimistic.Update(ctx, blobs.Fenced(h, blobs.NewJSON[ledger](p.blob())), leave, nil)
		return err
	},
	func(ctx context.Context, p *process, h *Hold) error {
		_, err := optimistic.Update(ctx, blobs.Fenced(h, blobs.NewJSON[ledger](p.blob())), sign(h), nil)
		return err
	},
}

var plainBlob = writer{"blob without a fence", nil, func(ctx context.Context, p *process, h *Hold) error {
	if err := h.Guard(ctx); err != nil {
		return err
	}
	_, err := optimistic.Update(ctx, blobs.NewJSON[ledger](p.blob()), sign(h), nil)
	return err
}}

// uncheckedBlob looks at the stored fence, but not in the request that writes.
var uncheckedBlob = writer{"blob with a fence that is checked before the write", fencedBlob.claim,
	func(ctx context.Context, p *process, h *Hold) error {
		client := p.blob()
		props, err := client.GetProperties(ctx, nil)
		if err != nil {
			return err
		}
		stored, err := fence.Parse(lowered(props.Metadata)[fence.Key])
		if err == nil {
			err = h.Fence().Admit("ledger", stored)
		}
		if err == nil {
			err = h.Guard(ctx)
		}
		if err != nil {
			return err
		}
		_, err = client.Upload(ctx, pesstest.Body(`{"by":[]}`), &blockblob.UploadOptions{
			Metadata: pointers(map[string]string{fence.Key: h.Fence().String()}), AccessConditions: &blob.AccessConditions{}})
		return err
	}}

func transact(ctx context.Context, p *process, holder fence.Holder, token fence.Token) error {
	_, err := tables.Transact(ctx, p.table(), "p", func(ctx context.Context, tx *tables.Tx) error {
		if token == 0 {
			return nil
		}
		return tx.Put(fmt.Sprint("row", token), map[string]string{"by": token.String()})
	}, &tables.TransactOptions{Holder: holder})
	return err
}

var fencedTable = writer{"table with its fence",
	func(ctx context.Context, p *process, h *Hold) error { return transact(ctx, p, h, 0) },
	func(ctx context.Context, p *process, h *Hold) error { return transact(ctx, p, h, h.Fence()) },
}

var plainTable = writer{"table without a fence", nil, func(ctx context.Context, p *process, h *Hold) error {
	if err := h.Guard(ctx); err != nil {
		return err
	}
	return transact(ctx, p, nil, h.Fence())
}}

// played runs one history: four processes that take the lock five times each.
func played(t *testing.T, seed uint64, by writer) *play {
	t.Helper()
	h := &play{}
	synctest.Test(t, func(t *testing.T) {
		w := newWorldWith(t, &aztest.Options{
			Seed: seed, Latency: func() time.Duration { return 5 * time.Millisecond }, DateLag: time.Duration(seed%2) * pesstest.DateLag,
		})
		h.w = w
		w.Put("ledger", `{"by":[]}`)
		w.Service.Table("ledgers")
		// The lock's own requests meet faults too.
		w.Faults.SetFaults(aztest.Fault{Kind: aztest.LoseAnswer, Probability: 0.05, Match: aztest.Op("Set Blob Metadata", "Lease Blob")},
			aztest.Fault{Kind: aztest.LoseRequest, Probability: 0.05, Match: aztest.Op("Set Blob Metadata", "Lease Blob")})
		var all sync.WaitGroup
		for i := range 4 {
			p := &process{h: h, next: w.Faults, rng: rand.New(rand.NewPCG(seed, uint64(i)))}
			all.Go(func() { p.live(t, by) })
		}
		all.Wait()
	})
	return h
}

func (p *process) live(t *testing.T, by writer) {
	k, err := NewLocker(p.h.w.ContainerOver(p), &LockerOptions{Duration: 15 * time.Second})
	if err != nil {
		t.Error(err)
		return
	}
	for range 5 {
		h, err := k.Lock(context.Background(), "job", nil)
		if err != nil {
			if !errors.Is(err, ErrLost) {
				t.Errorf("lock: %v", err)
			}
			continue
		}
		p.hold(h, by)
	}
}

// hold is the time of one holder.
func (p *process) hold(h *Hold, by writer) {
	one := history.Hold{From: time.Now(), Fence: int64(h.Fence())}
	context.AfterFunc(h.Context(), func() {
		one.To = time.Now()
		p.h.mu.Lock()
		defer p.h.mu.Unlock()
		p.h.spans = append(p.h.spans, one)
	})
	p.mu.Lock()
	p.fence = h.Fence()
	pause := time.Duration(p.rng.Int64N(int64(2 * time.Second)))
	p.mu.Unlock()
	p.h.mu.Lock()
	p.h.fences = append(p.h.fences, h.Fence())
	p.h.mu.Unlock()
	ctx := h.Context()
	var err error
	if by.claim != nil {
		err = by.claim(ctx, p, h)
	}
	if err == nil && ctx.Err() == nil {
		p.h.mu.Lock()
		p.h.claims = append(p.h.claims, stampedAt{h.Fence(), time.Now()})
		p.h.mu.Unlock()
	}
	for range 3 {
		if err == nil {
			err = by.write(ctx, p, h)
		}
		bubble.Sleep(pause / 3)
	}
	_ = h.Release(context.Background())
}

// verdict is the judgement of a checker on a history.
func (h *play) verdict() error {
	for i := 1; i < len(h.fences); i++ {
		if h.fences[i] <= h.fences[i-1] {
			return fmt.Errorf("fences do not grow: %d after %d", h.fences[i], h.fences[i-1])
		}
	}
	if err := history.Exclusive(h.spans); err != nil {
		return err
	}
	for _, w := range h.writes {
		for _, c := range h.claims {
			if c.token > w.token && w.at.After(c.at) {
				return fmt.Errorf("a write of holder %d landed at %v, and holder %d relied on being alone since %v", w.token, w.at, c.token, c.at)
			}
		}
	}
	return nil
}

// inMany plays many histories, until one is wrong, and says what is wrong with it.
func inMany(t *testing.T, seeds int, by writer) error {
	t.Helper()
	paused := 0
	for seed := range seeds {
		h := played(t, uint64(seed), by)
		paused += h.paused
		if len(h.writes) == 0 || len(h.spans) < 10 {
			t.Fatalf("seed %d: %d writes, %d holders: nothing was tried", seed, len(h.writes), len(h.spans))
		}
		if err := h.verdict(); err != nil {
			return fmt.Errorf("seed %d: %w", seed, err)
		}
	}
	if paused < seeds {
		t.Errorf("%d holders were paused in %d histories: too few to say anything", paused, seeds)
	}
	return nil
}

// Two holders within a second of the service's clock: only the stored fence sets them apart. The first request that
// writes it does not arrive.
func TestFencesGrowAlsoWhenStampsAreLost(t *testing.T) {
	inBubbles(t, func(t *testing.T, w *world) {
		var fences []fence.Token
		for range 2 {
			w.Faults.SetFaults(aztest.Fault{Kind: aztest.LoseRequest, Match: aztest.Op("Set Blob Metadata"), Count: 1})
			h := locked(t, w.lockerOf(nil), "job", nil)
			fences = append(fences, h.Fence())
			mustRelease(t, h.lease)
		}
		if fences[1] <= fences[0] {
			t.Errorf("fences %v", fences)
		}
	})
}
