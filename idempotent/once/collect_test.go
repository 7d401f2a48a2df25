//go:build !race

// Hundreds of keys, one after the other, in one goroutine: the race detector has seen such runs in the other tests of this package.

package once

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/azconc/azconc/idempotent/internal/markers"
	"github.com/azconc/azconc/pessimistic"
	"github.com/azconc/azconc/pkg/aztest"
	"github.com/azconc/azconc/pkg/retry"
)

func nothing(context.Context, *pessimistic.Hold) ([]byte, error) { return nil, nil }

// keeping returns a Once whose results are kept for so long.
func (r *rig) keeping(keep time.Duration) *Once {
	r.t.Helper()
	locks, err := pessimistic.NewLocker(r.service.Container("locks"), &pessimistic.LockerOptions{QuickFirst: true})
	if err != nil {
		r.t.Fatal(err)
	}
	o, err := New(locks, r.service.Table("results"), &Options{Keep: keep, Attempts: 3})
	if err != nil {
		r.t.Fatal(err)
	}
	return o
}

func (r *rig) do(ctx context.Context, o *Once, key string) Result {
	r.t.Helper()
	out, err := o.Do(ctx, key, nil, nothing)
	if err != nil {
		r.t.Fatal(err)
	}
	return out
}

// results counts the results and counts of attempts that are stored.
func (r *rig) results(o *Once) (n int) {
	r.t.Helper()
	if err := markers.Query(r.t.Context(), o.table, "PartitionKey ge ''", "RowKey", func([]byte) error { n++; return nil }); err != nil {
		r.t.Fatal(err)
	}
	return n
}

// collects reports whether a request is one of the collection.
func collects(q *aztest.Request) bool {
	return q.Op == "Query Entities" && q.Query.Has("$filter") || q.Op == "Entity Group Transaction"
}

// always and never decide by chance that a step is made, or not.
func always(ctx context.Context) context.Context {
	return retry.WithRandom(ctx, func() float64 { return 0 })
}
func never(ctx context.Context) context.Context {
	return retry.WithRandom(ctx, func() float64 { return 0.999 })
}

// TestAResultIsKeptForAsLongAsItWasPromised: what was stored without Keep is never deleted, what has a longer one only after that; and a machine
// whose results are kept for an hour deletes those of others no earlier.
func TestAResultIsKeptForAsLongAsItWasPromised(t *testing.T) {
	inBubble(t, func(t *testing.T, r *rig) {
		if _, err := r.service.Container("locks").Create(t.Context(), nil); err != nil {
			t.Fatal(err)
		}
		short, long, ever := r.keeping(time.Hour), r.keeping(30*24*time.Hour), r.keeping(0)
		r.do(never(t.Context()), short, "short")
		r.do(never(t.Context()), long, "long")
		r.do(never(t.Context()), ever, "ever")
		for _, step := range []struct {
			pass time.Duration
			kept string
		}{
			{24 * time.Hour, "short long ever"}, // a day more, for clocks that differ
			{time.Hour + time.Minute, "long ever"},
			{29 * 24 * time.Hour, "long ever"},
			{24*time.Hour + time.Minute, "ever"},
		} {
			pass(step.pass)
			r.do(always(t.Context()), short, fmt.Sprint("at ", time.Now().Unix()))
			kept := ""
			for _, key := range []string{"short", "long", "ever"} {
				if _, found, err := ever.Look(t.Context(), key); err != nil {
					t.Fatal(err)
				} else if found {
					kept += " " + key
				}
			}
			if kept != " "+step.kept {
				t.Errorf("after %v more:%s are left, want %s", step.pass, kept, step.kept)
			}
		}
	})
}

// TestWhatGoesWrongWhileResultsAreCollectedFailsNoRun: whatever comes back from the requests of the collection, the result is returned, and a later step deletes what
// is left.
func TestWhatGoesWrongWhileResultsAreCollectedFailsNoRun(t *testing.T) {
	for i, kind := range []aztest.FaultKind{aztest.LoseAnswer, aztest.FailAfterCommit, aztest.Throttle, aztest.Page, aztest.PageAfterCommit, aztest.Refuse} {
		for k, op := range []string{"Query Entities", "Entity Group Transaction"} {
			if testing.Short() && (i+k)%2 > 0 {
				continue
			}
			inBubble(t, func(t *testing.T, r *rig) {
				if _, err := r.service.Container("locks").Create(t.Context(), nil); err != nil {
					t.Fatal(err)
				}
				o := r.keeping(time.Hour)
				for i := range 60 { // twice as many entities, more than a transaction holds
					r.do(never(t.Context()), o, fmt.Sprint("old", i))
				}
				pass(48 * time.Hour)
				r.service.SetFaults(aztest.Fault{Kind: kind, Count: 3, Match: func(q *aztest.Request) bool { return q.Op == op && collects(q) }})
				for i := range 10 {
					r.do(always(t.Context()), o, fmt.Sprint("new", i))
				}
				if n := r.results(o); n != 2*10 {
					t.Errorf("%s, %s: %d entities are left", kind, op, n)
				}
			})
		}
	}
}

// TestResultsAreBoundedByRetentionNotByAge: a process for each key, none of which has done anything before, and 18 days. The collection
// costs at most a hundredth of the requests.
func TestResultsAreBoundedByRetentionNotByAge(t *testing.T) {
	inBubble(t, func(t *testing.T, r *rig) {
		if _, err := r.service.Container("locks").Create(t.Context(), nil); err != nil {
			t.Fatal(err)
		}
		const perDay = 50
		n := 0.0
		ctx := retry.WithRandom(t.Context(), func() float64 { n += 0.6180339887; return n - float64(int(n)) })
		most, total, queries := 0, 0, 0
		for day := range 18 {
			r.service.Reset()
			for i := range perDay {
				r.do(ctx, r.keeping(24*time.Hour), fmt.Sprintf("report@%03d-%d", day, i))
				pass(24 * time.Hour / perDay)
			}
			total += r.service.Requests()
			for _, q := range r.service.Log() {
				if collects(&q) {
					queries++
				}
			}
			most = max(most, r.results(r.keeping(0)))
		}
		t.Logf("%d entities at most; the collection has sent %d of %d requests", most, queries, total)
		if limit := 2 * (2*perDay + 2*collectEvery); most > limit || queries == 0 || 100*queries > total {
			t.Errorf("%d entities at most, want %d; the collection has sent %d of %d requests", most, limit, queries, total)
		}
	})
}
