package manual

import (
	"context"
	"testing"

	"github.com/azconc/azconc/pessimistic"
	"github.com/azconc/azconc/pessimistic/internal/pesstest"
	"github.com/azconc/azconc/pkg/aztest"
	"github.com/azconc/azconc/pkg/observe"
)

// TestEachFunctionIsOneSpan, with one below it for each request.
func TestEachFunctionIsOneSpan(t *testing.T) {
	s := aztest.New(nil)
	s.BlockBlob("box", "b") // creates the container
	var spans pesstest.Spans
	o := &Options{Hooks: observe.Hooks{Span: spans.Span}}
	r := pessimistic.NewContainer(s.Container("box"))
	for _, call := range []func(ctx context.Context) error{
		func(ctx context.Context) error {
			_, err := Acquire(ctx, r, &AcquireOptions{Options: *o, LeaseID: mine})
			return err
		},
		func(ctx context.Context) error { _, err := Renew(ctx, r, mine, o); return err },
		func(ctx context.Context) error { _, err := Change(ctx, r, mine, next, o); return err },
		func(ctx context.Context) error { return Release(ctx, r, next, o) },
	} {
		if err := call(t.Context()); err != nil {
			t.Error(err)
		}
	}
	if diff := spans.Want(
		"manual.Acquire box", " Acquire Lease box",
		"manual.Renew box", " Renew Lease box",
		"manual.Change box", " Change Lease box",
		"manual.Release box", " Release Lease box",
	); diff != "" {
		t.Error(diff)
	}
}
