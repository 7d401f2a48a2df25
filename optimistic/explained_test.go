package optimistic_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/azconc/azconc/optimistic"
	"github.com/azconc/azconc/optimistic/blobs"
	"github.com/azconc/azconc/pkg/aztest"
	"github.com/azconc/azconc/pkg/retry"
)

// TestAnErrorSaysWhatWasTriedAndHowOften: a context that ended was returned bare, and a throttled request said nothing of its tries.
func TestAnErrorSaysWhatWasTriedAndHowOften(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := aztest.New(nil)
		if _, err := s.Container("jobs").Create(t.Context(), nil); err != nil {
			t.Fatal(err)
		}
		s.SetFaults(aztest.Fault{Kind: aztest.Throttle})
		update := func(ctx context.Context) error {
			_, err := optimistic.Update(ctx, blobs.NewJSON[map[string]int](s.BlockBlob("jobs", "a")), func(context.Context, *map[string]int) error { return nil }, nil)
			return err
		}
		if err := update(t.Context()); err == nil || !strings.HasPrefix(err.Error(), "update jobs/a: 503 ServerBusy") || !strings.Contains(err.Error(), " tries in ") {
			t.Errorf("throttled: %v", err)
		}
		ctx, cancel := context.WithCancelCause(retry.WithRandom(t.Context(), func() float64 { return 0.9 }))
		defer time.AfterFunc(time.Second, func() { cancel(errors.New("the job's time is up")) }).Stop()
		const want = "update jobs/a: the job's time is up; the last failure: 503 ServerBusy (request "
		if err := update(ctx); !errors.Is(err, context.Cause(ctx)) || !strings.HasPrefix(err.Error(), want) || !strings.Contains(err.Error(), "3 tries in 1s") {
			t.Errorf("ended: %v", err)
		}
	})
}
