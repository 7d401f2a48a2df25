package idempotent

import (
	"context"
	"errors"
	"strings"
	"sync"
	"testing"
	"time"
)

// TestMessagesOfOneAnswerShareAReceipt: the service gives all messages of one Get Messages answer the same pop receipt, in
// every recording of more than one (see pkg/aztest/internal/replay). What happens to one of them must not touch the
// others: deleting it, renewing it, and making it visible again.
func TestMessagesOfOneAnswerShareAReceipt(t *testing.T) {
	inBubble(t, func(t *testing.T, r *rig) {
		r.send("short", "long", "failing")
		r.service.Reset()
		var mu sync.Mutex
		started := map[string]int{}
		r.consume(func(_ context.Context, m *Message) error {
			mu.Lock()
			started[string(m.Body)]++
			n := started[string(m.Body)]
			mu.Unlock()
			switch {
			case string(m.Body) == "long":
				pass(time.Minute) // which takes renewals
			case string(m.Body) == "failing" && n == 1:
				pass(time.Second)
				return errors.New("not yet")
			}
			return nil
		}, ConsumerOptions{Concurrency: 3, Visibility: 10 * time.Second})
		if started["short"] != 1 || started["long"] != 1 || started["failing"] != 2 {
			t.Errorf("started %v, want short and long once, failing twice", started)
		}
		first := map[string]string{} // the receipt with which each message was used first
		for _, q := range r.service.Log() {
			if _, id, found := strings.Cut(q.Resource, "/messages/"); found && first[id] == "" {
				first[id] = q.Query.Get("popreceipt")
			}
		}
		receipts := map[string]bool{}
		for _, receipt := range first {
			receipts[receipt] = true
		}
		if len(first) != 3 || len(receipts) != 1 {
			t.Errorf("%d messages with %d receipts, want 3 with one: the premise is gone", len(first), len(receipts))
		}
	})
}
