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
		ctx, cancel := context.WithCancelCause(t.Context())
		defer time.AfterFunc(time.Second, func() { cancel(errors.New("the job's time is up")) }).Stop()
		if err := update(ctx); !errors.Is(err, context.Cause(ctx)) || err.Error() != "update jobs/a: the job's time is up" {
			t.Errorf("ended: %v", err)
		}
	})
}
