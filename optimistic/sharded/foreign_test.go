package sharded_test

import (
	"errors"
	"testing"
	"testing/synctest"

	"github.com/azconc/azconc/optimistic"
	"github.com/azconc/azconc/optimistic/blobs"
	"github.com/azconc/azconc/optimistic/internal/optest"
	"github.com/azconc/azconc/optimistic/sharded"
	"github.com/azconc/azconc/pkg/aztest"
)

// TestACounterAndADocumentOfOneNameSpareEachOther: a counter took a document of its name for a counter with the sum 0. Its
// additions removed the values of the document, and its deletion removed all; and the reverse.
func TestACounterAndADocumentOfOneNameSpareEachOther(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, ctx := aztest.New(nil), t.Context()
		at := inBlobs(s)
		document := func(name string) *sharded.Document[tally] {
			d, err := sharded.NewDocument(name, func(name string) optimistic.Target[sharded.Share[tally]] {
				return blobs.NewJSON[sharded.Share[tally]](s.BlockBlob("box", name))
			}, together, nil)
			if err != nil {
				t.Fatal(err)
			}
			return d
		}
		counter := func(name string) *sharded.Counter {
			c, err := sharded.NewCounter(name, at, nil)
			if err != nil {
				t.Fatal(err)
			}
			return c
		}
		seen := document("seen")
		visits := counter("visits")
		for _, err := range []error{
			optest.ErrorOf(seen.Create(ctx, 1)), optest.ErrorOf(put(ctx, seen, "a")), optest.ErrorOf(seen.Grow(ctx, 3)),
			optest.ErrorOf(visits.Create(ctx, 3)), optest.ErrorOf(visits.Add(ctx, 5)),
		} {
			if err != nil {
				t.Fatal(err)
			}
		}
		c, d := counter("seen"), document("visits")
		for _, one := range []struct {
			name string
			want error
			run  func() error
		}{
			{"add", sharded.ErrNoCounter, func() error { return optest.ErrorOf(c.Add(ctx, 1)) }},
			{"sum", sharded.ErrNoCounter, func() error { return optest.ErrorOf(c.Get(ctx)) }},
			{"create the counter", sharded.ErrNoCounter, func() error { return optest.ErrorOf(c.Create(ctx, 4)) }},
			{"grow the counter", sharded.ErrNoCounter, func() error { return optest.ErrorOf(c.Grow(ctx, 4)) }},
			{"delete the counter", sharded.ErrNoCounter, func() error { return optest.ErrorOf(c.Delete(ctx)) }},
			{"update", sharded.ErrNoDocument, func() error { return optest.ErrorOf(put(ctx, d, "a")) }},
			{"get", sharded.ErrNoDocument, func() error { return optest.ErrorOf(d.Get(ctx)) }},
			{"create the document", sharded.ErrNoDocument, func() error { return optest.ErrorOf(d.Create(ctx, 4)) }},
			{"grow the document", sharded.ErrNoDocument, func() error { return optest.ErrorOf(d.Grow(ctx, 4)) }},
			{"delete the document", sharded.ErrNoDocument, func() error { return optest.ErrorOf(d.Delete(ctx)) }},
		} {
			if err := one.run(); !errors.Is(err, one.want) {
				t.Errorf("%s: %v, want %v", one.name, err, one.want)
			}
		}
		if got, sum := merged(t, seen), total(t, visits); got["a"] != 1 || sum != 5 {
			t.Errorf("the document has %v, and the sum is %d", got, sum)
		}
	})
}
