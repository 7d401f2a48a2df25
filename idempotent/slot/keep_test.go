package slot

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/azconc/azconc/idempotent/once"
	"github.com/azconc/azconc/pessimistic"
	"github.com/azconc/azconc/pkg/aztest/bubble"
	"github.com/azconc/azconc/pkg/retry"
)

// TestTheResultOfASlotOutlivesWhatMissedLooksBackAt: results are kept for an hour, but the last one before an outage of three days is there
// afterwards, and says which slots were missed. Later it is deleted, and those of another job are not.
func TestTheResultOfASlotOutlivesWhatMissedLooksBackAt(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := start(t)
		m := &machine{Transporter: s, keys: once.Options{Keep: time.Hour}}
		ctx := retry.WithRandom(t.Context(), func() float64 { return 0 }) // each run makes a step of the collection
		do := func(j *Job) {
			t.Helper()
			if _, err := j.Do(ctx, func(context.Context, *pessimistic.Hold, Slot) ([]byte, error) { return nil, nil }); err != nil {
				t.Fatal(err)
			}
		}
		report, other := m.job(t, s, "report", "*/5 * * * *"), m.job(t, s, "other", "*/5 * * * *")
		first, err := report.Schedule.Due(ctx, report.Clock, 0)
		if err != nil {
			t.Fatal(err)
		}
		do(other)
		do(report)
		bubble.Sleep(3 * 24 * time.Hour)
		due, err := report.Schedule.Due(ctx, report.Clock, 0)
		if err != nil {
			t.Fatal(err)
		}
		if missed, err := Missed(ctx, report.Keys, "report", report.Schedule, due); len(missed) != 3*24*12-1 || err != nil {
			t.Errorf("%d slots were missed, %v", len(missed), err)
		}
		do(report)
		if _, found, err := report.Keys.Look(ctx, first.Key("report")); !found || err != nil {
			t.Errorf("after three days the result is found: %t, %v", found, err)
		}
		bubble.Sleep(6 * 24 * time.Hour)
		do(report)
		if _, found, err := report.Keys.Look(ctx, first.Key("report")); found || err != nil {
			t.Errorf("after nine days the result is found: %t, %v", found, err)
		}
		if _, found, err := other.Keys.Look(ctx, first.Key("other")); !found || err != nil {
			t.Errorf("that of another job is found: %t, %v", found, err)
		}
	})
}
