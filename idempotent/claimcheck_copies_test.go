package idempotent

import (
	"context"
	"errors"
	"slices"
	"testing"
	"time"

	"github.com/azconc/azconc/pkg/aztest"
)

// TestALateCopyWhoseBodyIsGoneIsNoPoison: the copy that was handled first takes the body with it, and 64 of 400 messages that
// were sent twice went to the poison queue although their effects were applied.
func TestALateCopyWhoseBodyIsGoneIsNoPoison(t *testing.T) {
	for _, c := range []struct {
		name           string
		asks           bool
		outage         bool
		buried, copies int
	}{
		{"asked", true, false, 0, 2},
		{"asked in an outage of the table", true, true, 0, 2},
		{"not asked", false, false, 1, 1},
	} {
		t.Run(c.name, func(t *testing.T) {
			inClaimBubble(t, func(t *testing.T, r *rig, k *ClaimCheck) {
				body, runs := noise(70_000), 0
				handle := func(ctx context.Context, m *Message) error {
					runs++
					return r.inbox.Apply(ctx, m, "p", upsertEffect(m))
				}
				o := ConsumerOptions{Dedupe: DedupeInbox, ClaimCheck: k, Poison: r.poison, Poll: pollEvery(time.Second), MaxAttempts: 1, MaxDeliveries: 1}
				if c.asks {
					o.Applied = func(ctx context.Context, m *Message) (bool, error) { return r.inbox.Applied(ctx, m, "p") }
				}
				r.sendBody(k, "m", body)
				text := peekTexts(t, r.queue)[0]
				r.consume(handle, o)
				if _, err := r.queue.EnqueueMessage(t.Context(), text, nil); err != nil { // a copy that was under way
					t.Fatal(err)
				}
				if c.outage {
					r.service.SetFaults(aztest.Fault{Kind: aztest.Throttle, Match: aztest.Op("Query Entity", "Get Entity", "Query Entities"), Count: 30})
				}
				r.consume(handle, o)
				if runs != 1 || r.applied("m") != 1 || len(r.buried()) != c.buried || len(r.blobs()) != 0 || len(r.left(r.queue)) != 0 {
					t.Errorf("%d runs, effect %d, %d buried, left %q", runs, r.applied("m"), len(r.buried()), r.blobs())
				}
				if told := slices.Contains(r.kinds(), Failed); told != c.outage {
					t.Errorf("%v", r.kinds())
				}
				if n := len(slices.DeleteFunc(r.kinds(), func(k EventKind) bool { return k != Completed })); n != c.copies {
					t.Errorf("%v", r.kinds())
				}
			})
		})
	}
}

func TestABodyThatWasDeletedByMistakeIsPoison(t *testing.T) {
	inClaimBubble(t, func(t *testing.T, r *rig, k *ClaimCheck) {
		r.sendBody(k, "m", noise(70_000))
		for _, name := range r.blobs() {
			if _, err := r.service.Container("claims").NewBlobClient(name).Delete(t.Context(), nil); err != nil {
				t.Fatal(err)
			}
		}
		r.consume(func(context.Context, *Message) error { return errors.New("handled") }, ConsumerOptions{
			Dedupe: DedupeInbox, ClaimCheck: k, Poison: r.poison,
			Applied: func(ctx context.Context, m *Message) (bool, error) { return r.inbox.Applied(ctx, m, "p") }})
		if len(r.buried()) != 1 || len(r.left(r.queue)) != 0 {
			t.Errorf("%d buried", len(r.buried()))
		}
	})
}
