package idempotent

import (
	"errors"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore/to"
	"github.com/Azure/azure-sdk-for-go/sdk/storage/azqueue"

	"github.com/azconc/azconc/pkg/aztest"
)

// received is a message in our hands, by its id and pop receipt.
func (r *rig) received(queue *azqueue.QueueClient) (id, pop, text string) {
	r.t.Helper()
	resp, err := queue.DequeueMessages(r.t.Context(), &azqueue.DequeueMessagesOptions{VisibilityTimeout: to.Ptr(int32(30))})
	if err != nil || len(resp.Messages) != 1 {
		r.t.Fatalf("%d messages, %v", len(resp.Messages), err)
	}
	m := resp.Messages[0]
	return *m.MessageID, *m.PopReceipt, *m.MessageText
}

func TestAnExtensionKeepsTheTextAndChangesTheReceipt(t *testing.T) {
	inBubble(t, func(t *testing.T, r *rig) {
		r.send("a")
		id, pop, text := r.received(r.queue)
		r.service.Reset()
		e, err := Extend(t.Context(), r.queue, id, pop, time.Minute)
		if err != nil || e.PopReceipt == pop || e.PopReceipt == "" || r.service.Requests() != 1 {
			t.Fatalf("%+v, %v after %d requests", e, err, r.service.Requests())
		}
		if _, err := Extend(t.Context(), r.queue, id, pop, 0); !errors.Is(err, ErrOwnershipLost) {
			t.Errorf("the old receipt: %v", err)
		}
		if _, err := Extend(t.Context(), r.queue, id, e.PopReceipt, 0); err != nil {
			t.Error(err)
		}
		if _, _, again := r.received(r.queue); again != text {
			t.Errorf("the text is %q, was %q", again, text)
		}
	})
}

func TestAnExtensionWhoseAnswerIsLostSaysSo(t *testing.T) {
	for _, kind := range []aztest.FaultKind{aztest.LoseAnswer, aztest.FailAfterCommit, aztest.LoseRequest, aztest.Throttle} {
		inBubble(t, func(t *testing.T, r *rig) {
			r.send("a")
			p := r.process()
			id, pop, _ := r.received(r.queue)
			p.wire.SetFaults(aztest.Fault{Kind: kind, Count: 1})
			_, err := Extend(t.Context(), p.queue, id, pop, time.Minute)
			lost := kind == aztest.LoseAnswer || kind == aztest.FailAfterCommit
			if lost != errors.Is(err, ErrReceiptUnknown) || !lost && err != nil {
				t.Errorf("%s: %v", kind, err)
			}
		})
	}
}

// The SDK alone would replace the text by an empty one.
func TestWithoutThePolicyNothingIsWiped(t *testing.T) {
	inBubble(t, func(t *testing.T, r *rig) {
		r.send("a")
		bare := r.service.QueueService().NewQueueClient("orders")
		id, pop, text := r.received(r.queue)
		if _, err := Extend(t.Context(), bare, id, pop, time.Second); err == nil || !strings.Contains(err.Error(), "Policy") {
			t.Errorf("err = %v", err)
		}
		pass(time.Minute)
		if _, _, again := r.received(r.queue); again != text {
			t.Errorf("the text is %q, was %q", again, text)
		}
		for _, bad := range []time.Duration{-time.Second, time.Second / 2, 8 * 24 * time.Hour} {
			if _, err := Extend(t.Context(), r.queue, id, pop, bad); err == nil {
				t.Errorf("%v: no error", bad)
			}
		}
	})
}

func TestARenewalThatAnIntermediaryConfirmsLeavesTheReceiptUnknown(t *testing.T) {
	inBubble(t, func(t *testing.T, r *rig) {
		r.send("m")
		id, pop, text := r.received(r.queue)
		p := r.process()
		receipt := newReceipt(p.queue, id, text)
		receipt.count = func() {}
		receipt.adopt(pop, time.Now().Add(30*time.Second))
		p.wire.SetFaults(aztest.Fault{Kind: aztest.PageAfterCommit, Status: http.StatusNoContent, Match: aztest.Op("Update Message"), Count: 1})
		if err := receipt.extend(t.Context(), time.Minute); !errors.Is(err, ErrReceiptUnknown) {
			t.Errorf("extend: %v", err)
		}
	})
}
