package explore_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore/policy"
	"github.com/Azure/azure-sdk-for-go/sdk/azcore/streaming"
	"github.com/Azure/azure-sdk-for-go/sdk/storage/azblob/blob"
	"github.com/Azure/azure-sdk-for-go/sdk/storage/azblob/blockblob"

	"github.com/azconc/azconc/optimistic"
	"github.com/azconc/azconc/optimistic/blobs"
	"github.com/azconc/azconc/pkg/azerr"
	"github.com/azconc/azconc/pkg/aztest/explore"
)

// counter reads the number that a blob holds, past the gate.
func counter(w *explore.World) (int, error) {
	v, err := optimistic.Read(context.Background(), blobs.NewJSON[int](w.Service.BlockBlob("box", "n")), nil)
	if errors.Is(err, optimistic.ErrNotFound) {
		return 0, nil
	}
	if err != nil {
		return 0, err
	}
	return v.Value, nil
}

// increments is a program of n clients that each add 1 to a blob that exists.
func increments(n int, add func(ctx context.Context, client *blockblob.Client) error) func(w *explore.World) explore.Program {
	return func(w *explore.World) explore.Program {
		start := w.Service.BlockBlob("box", "n")
		if _, err := start.UploadBuffer(context.Background(), []byte("0"), nil); err != nil {
			panic(err)
		}
		var p explore.Program
		for range n {
			p.Clients = append(p.Clients, func(ctx context.Context, c *explore.Client) error { return add(ctx, c.BlockBlob("box", "n")) })
		}
		p.Check = func() error { return addedOnce(w) }
		return p
	}
}

// addedOnce holds the number against what the clients say: each success is in it, no conflict is, and an unknown outcome
// may be.
func addedOnce(w *explore.World) error {
	got, err := counter(w)
	if err != nil {
		return err
	}
	low, high := 0, 0
	for i, err := range w.Errors() {
		switch {
		case err == nil:
			low, high = low+1, high+1
		case errors.Is(err, optimistic.ErrOutcomeUnknown) || w.Killed(i):
			high++
		}
	}
	if got < low || got > high {
		return fmt.Errorf("the blob holds %d, and the clients' outcomes %v allow %d to %d", got, w.Errors(), low, high)
	}
	return nil
}

func updateOnce(ctx context.Context, client *blockblob.Client) error {
	_, err := optimistic.Update(ctx, blobs.NewJSON[int](client), func(_ context.Context, n *int) error { *n++; return nil }, nil)
	return err
}

// textbook is the loop that trusts every 412.
func textbook(ctx context.Context, client *blockblob.Client) error {
	ctx = policy.WithRetryOptions(ctx, policy.RetryOptions{MaxRetries: -1})
	for range 10 {
		resp, err := client.DownloadStream(ctx, nil)
		if azerr.Classify(err).Ambiguous() {
			continue
		}
		if err != nil {
			return err
		}
		var n int
		if _, err := fmt.Fscan(resp.Body, &n); err != nil {
			return err
		}
		resp.Body.Close()
		for tries := 0; ; tries++ {
			_, err = client.Upload(ctx, streaming.NopCloser(strings.NewReader(fmt.Sprint(n+1))), &blockblob.UploadOptions{
				AccessConditions: &blob.AccessConditions{ModifiedAccessConditions: &blob.ModifiedAccessConditions{IfMatch: resp.ETag}},
			})
			if tries == 3 || !azerr.Classify(err).Ambiguous() {
				break
			}
		}
		if azerr.Classify(err).Kind != azerr.Conflict {
			return err
		}
	}
	return errors.New("too many conflicts")
}

func TestUpdateIsAppliedOnceInEverySchedule(t *testing.T) {
	explored(t, and(writes, 2, 3, 0, 3, 2, 0, 2, 4, 2),
		func(clients int) func(*explore.World) explore.Program { return increments(clients, updateOnce) }, explore.Options{})
}

func TestTheTextbookLoopIsConvicted(t *testing.T) {
	if r := explore.Run(t, increments(2, textbook), nil); r.Violation != "" || !r.Complete {
		t.Errorf("without a fault: %v\n%s", r, r.Violation)
	}
	r := explore.Run(t, increments(1, textbook), &explore.Options{Faults: 1})
	if r.Violation == "" {
		t.Fatalf("one lost response: %v", r)
	}
	t.Logf("convicted after %d schedules:\n%s", r.Schedules, r.Violation)
	again := explore.Run(t, increments(1, textbook), &explore.Options{Faults: 1, Replay: r.Replay})
	if again.Violation != r.Violation {
		t.Errorf("replayed: %s", again.Violation)
	}
}
