//go:build !race

// Weeks of effects, one after the other: the race detector has seen an Inbox in the tests of its consumers.

package idempotent

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/azconc/azconc/pkg/aztest"
	"github.com/azconc/azconc/pkg/retry"
)

// collectingInbox returns an Inbox that collects.
func (r *rig) collectingInbox() *Inbox {
	r.t.Helper()
	i, err := NewInbox(r.effects, nil)
	if err != nil {
		r.t.Fatal(err)
	}
	return i
}

// apply applies the effect of a message that expires after a time.
func (r *rig) apply(ctx context.Context, i *Inbox, key string, ttl time.Duration) {
	r.t.Helper()
	m := &Message{ID: key, Key: key, Queue: "account/orders", Expires: time.Now().Add(ttl)}
	if err := i.Apply(ctx, m, "eu", func(context.Context, *optimisticTx) error { return nil }); err != nil {
		r.t.Fatal(err)
	}
}

// TestMarksOfAnInboxAreBoundedByRetentionNotByAge: for 45 days messages are applied to a partition, under ids that have a date and ids
// that have none. There are never more marks than those of 16 days and of four steps, the collection costs at most a hundredth of what an
// effect and its message cost, and nothing goes that has no time, or is not a mark.
func TestMarksOfAnInboxAreBoundedByRetentionNotByAge(t *testing.T) {
	perDay := 100
	if testing.Short() {
		perDay = 30
	}
	inBubble(t, func(t *testing.T, r *rig) {
		const days = 45
		old := time.Now().Add(-100 * 24 * time.Hour).UTC().Format(time.RFC3339)
		for _, entity := range []string{
			`{"PartitionKey":"eu","RowKey":"azconcinbox-orders.00000000-without-a-time","n":1}`,
			`{"PartitionKey":"eu","RowKey":"order-17","expires@odata.type":"Edm.DateTime","expires":"` + old + `"}`,
			`{"PartitionKey":"us","RowKey":"azconcinbox-orders.1","expires@odata.type":"Edm.DateTime","expires":"` + old + `"}`,
		} {
			if _, err := r.effects.AddEntity(t.Context(), []byte(entity), nil); err != nil {
				t.Fatal(err)
			}
		}
		i, n := r.collectingInbox(), 0.0
		ctx := retry.WithRandom(t.Context(), func() float64 { n += 0.6180339887; return n - float64(int(n)) })
		r.apply(ctx, i, "for ever", 1000*24*time.Hour)
		most, spent := 0, 0
		for day := range days {
			r.service.Reset()
			for k := range perDay {
				key := fmt.Sprintf("%d-%d", day, k)
				if k%3 > 0 {
					key = dated(k)
				}
				r.apply(ctx, i, key, 7*24*time.Hour)
				pass(24 * time.Hour / time.Duration(perDay))
			}
			spent += r.service.Requests() - perDay // an effect is one
			there := r.remembered("effects") - 4
			if most = max(most, there); there < min(day+1, 15)*perDay {
				t.Errorf("day %d: %d marks, and %d have not expired", day, there, min(day+1, 15)*perDay)
			}
		}
		t.Logf("%d marks at most; the collection has sent %d requests for %d effects", most, spent, days*perDay)
		if limit := 16*perDay + 4*collectEvery; most > limit || spent == 0 || spent*100 > 2*days*perDay {
			t.Errorf("%d marks at most, want %d; the collection has sent %d requests for %d effects", most, limit, spent, days*perDay)
		}
		pass(100 * 24 * time.Hour)
		for range 10 {
			for _, key := range []string{"x", dated(1)} {
				if _, err := i.sweep(t.Context(), &Message{Key: key, Queue: "account/orders"}, "eu"); err != nil {
					t.Fatal(err)
				}
			}
		}
		if got := r.remembered("effects"); got != 4 {
			t.Errorf("%d entities are left, want the mark without a time, the one that lasts, and those of others", got)
		}
	})
}

// TestWhatGoesWrongWhileMarksAreCollectedFailsNoEffect: whatever comes back from the requests of the collection, the effect is applied, and a
// later step deletes what is left.
func TestWhatGoesWrongWhileMarksAreCollectedFailsNoEffect(t *testing.T) {
	for i, kind := range []aztest.FaultKind{aztest.LoseAnswer, aztest.FailAfterCommit, aztest.Throttle, aztest.Page, aztest.PageAfterCommit, aztest.Truncate, aztest.Refuse} {
		for k, op := range []string{"Query Entities", "Entity Group Transaction"} {
			if testing.Short() && (i+k)%2 > 0 {
				continue
			}
			t.Run(fmt.Sprint(kind, " ", op), func(t *testing.T) {
				inBubble(t, func(t *testing.T, r *rig) {
					i := r.collectingInbox()
					never := retry.WithRandom(t.Context(), func() float64 { return 0.999 })
					for k := range 120 {
						r.apply(never, i, fmt.Sprint("old", k), time.Hour)
					}
					pass(16 * 24 * time.Hour)
					r.service.SetFaults(aztest.Fault{Kind: kind, Count: 3, Match: aztest.Op(op), Skip: 1}) // after the effect or the first query
					always := retry.WithRandom(t.Context(), func() float64 { return 0 })
					r.apply(always, i, "new", time.Hour)
					for range 10 {
						i.collect(always, &Message{Key: "new", Queue: "account/orders"}, "eu")
					}
					if got := r.remembered("effects"); got != 1 {
						t.Errorf("%d marks are left, want that of the new effect", got)
					}
				})
			})
		}
	}
}
