package sharded_test

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/azconc/azconc/optimistic"
	"github.com/azconc/azconc/optimistic/internal/optest"
	"github.com/azconc/azconc/optimistic/sharded"
	"github.com/azconc/azconc/pkg/aztest"
	"github.com/azconc/azconc/pkg/aztest/bubble"
)

// TestEveryWriteOfADocumentUnderEveryFault runs each method with a fault at each of its writes, as
// TestEveryWriteOfACounterUnderEveryFault does: an empty share is another content than a zero.
func TestEveryWriteOfADocumentUnderEveryFault(t *testing.T) {
	type document = sharded.Document[tally]
	steps := map[string]struct {
		writes int
		run    func(context.Context, *document) error
	}{
		"create": {3, func(ctx context.Context, d *document) error { return optest.ErrorOf(d.Create(ctx, 3)) }},
		"update": {1, func(ctx context.Context, d *document) error { return optest.ErrorOf(put(ctx, d, "new")) }},
		"grow":   {2, func(ctx context.Context, d *document) error { return optest.ErrorOf(d.Grow(ctx, 4)) }},
		"delete": {4, func(ctx context.Context, d *document) error { return optest.ErrorOf(d.Delete(ctx)) }},
	}
	for name, fault := range optest.Every(aztest.Writes) {
		for op, step := range steps {
			for skip := range step.writes {
				t.Run(fmt.Sprintf("%s/%s/%d", name, op, skip), func(t *testing.T) {
					synctest.Test(t, func(t *testing.T) {
						s, ctx, want := aztest.New(nil), t.Context(), tally{}
						open := tallies(t, s)
						if op != "create" {
							d := open()
							for _, err := range []error{optest.ErrorOf(d.Create(ctx, 3)), optest.ErrorOf(put(ctx, d, "old"))} {
								if err != nil {
									t.Fatal(err)
								}
							}
							want["old"] = 1
						}
						fault.Skip = skip
						s.SetFaults(fault)
						err := step.run(ctx, open())
						s.SetFaults()
						bubble.Sleep(2 * time.Hour) // what is delayed arrives
						s.Flush()
						m, getErr := open().Get(ctx)
						got := m.Value
						switch {
						case op == "delete" && err == nil:
							if !errors.Is(getErr, optimistic.ErrNotFound) {
								t.Errorf("after a deletion that succeeded: %v, %v", got, getErr)
							}
						case op == "delete":
							if err := step.run(ctx, open()); err != nil && !errors.Is(err, optimistic.ErrNotFound) {
								t.Errorf("a second deletion: %v", err)
							}
						case op == "create" && err != nil:
							if err := step.run(ctx, open()); err != nil {
								t.Errorf("created again: %v", err)
							}
						case getErr != nil || got["old"] != want["old"] || got["new"] > 1:
							t.Errorf("after %v: %v, %v", err, got, getErr)
						case err == nil && (op == "update") != (got["new"] == 1), err != nil && !errors.Is(err, optimistic.ErrOutcomeUnknown) && got["new"] != 0:
							t.Errorf("after %v: %v", err, got)
						}
					})
				})
			}
		}
	}
}
