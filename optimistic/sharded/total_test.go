package sharded_test

import (
	"errors"
	"fmt"
	"math"
	"strings"
	"testing"

	"github.com/azconc/azconc/optimistic"
	"github.com/azconc/azconc/optimistic/internal/optest"
	"github.com/azconc/azconc/optimistic/sharded"
	"github.com/azconc/azconc/pkg/aztest"
	"github.com/azconc/azconc/pkg/retry"
)

// TestASumThatFitsIsFound has a sum that leaves the range of int64 on the way, and ends within it.
func TestASumThatFitsIsFound(t *testing.T) {
	s := aztest.New(nil)
	at := inBlobs(s)
	c := made(t, at, 3)
	optest.Put(t, s.BlockBlob("box", "visits"), fmt.Sprintf(`{"n":%d,"shards":3}`, int64(math.MaxInt64)))
	optest.Put(t, s.BlockBlob("box", sharded.Name("visits", 1)), `{"n":5}`)
	optest.Put(t, s.BlockBlob("box", sharded.Name("visits", 2)), `{"n":-5}`)
	if sum, err := c.Get(t.Context()); err != nil || sum.Value != math.MaxInt64 {
		t.Errorf("%+v, %v; want %d", sum, err, int64(math.MaxInt64))
	}
}

// TestAReaderOutlivesACounterWithMoreShards reads a counter that another process has deleted and made again with fewer.
func TestAReaderOutlivesACounterWithMoreShards(t *testing.T) {
	s := aztest.New(nil)
	at := inBlobs(s)
	reader, other := made(t, at, 4), open(t, at)
	total(t, reader)
	if _, err := other.Delete(t.Context()); err != nil {
		t.Fatal(err)
	}
	if _, err := other.Create(t.Context(), 2); err != nil {
		t.Fatal(err)
	}
	if _, err := other.Add(t.Context(), 7); err != nil {
		t.Fatal(err)
	}
	s.Reset()
	if sum, err := reader.Get(t.Context()); err != nil || sum.Value != 7 || sum.Shards != 2 || sum.Requests != 6 || s.Requests() != 6 {
		t.Errorf("%+v, %v, %d requests; want 7 in 2 shards for 4 reads of what it knew and 2 of what there is", sum, err, s.Requests())
	}
}

// TestAWriterOutlivesACounterWithMoreShards adds to a counter that another process has deleted and made again with fewer: the
// shard that the writer knows is gone, and the counter is not.
func TestAWriterOutlivesACounterWithMoreShards(t *testing.T) {
	s := aztest.New(nil)
	at := inBlobs(s)
	ctx := retry.WithRandom(t.Context(), func() float64 { return 0.9 }) // chooses the last shard
	writer, other := made(t, at, 4), open(t, at)
	if _, err := writer.Add(ctx, 5); err != nil {
		t.Fatal(err)
	}
	if _, err := other.Delete(ctx); err != nil {
		t.Fatal(err)
	}
	if _, err := writer.Add(ctx, 1); !errors.Is(err, optimistic.ErrNotFound) {
		t.Errorf("an addition to a deleted counter: %v", err)
	}
	writer = open(t, at)
	for _, err := range []error{optest.ErrorOf(other.Create(ctx, 4)), optest.ErrorOf(writer.Add(ctx, 5)), optest.ErrorOf(other.Delete(ctx)), optest.ErrorOf(other.Create(ctx, 2))} {
		if err != nil {
			t.Fatal(err)
		}
	}
	s.Reset()
	if res, err := writer.Add(ctx, 7); err != nil || !res.Changed || res.Requests != s.Requests() {
		t.Errorf("%+v, %v; sent %v", res, err, s.Log())
	}
	if sum := total(t, writer); sum != 7 {
		t.Errorf("the sum is %d, want 7", sum)
	}
}

// TestAMissingShardIsNamed: a shard that was deleted is not a counter that is not there.
func TestAMissingShardIsNamed(t *testing.T) {
	s := aztest.New(nil)
	at, ctx := inBlobs(s), retry.WithRandom(t.Context(), func() float64 { return 0.9 })
	made(t, at, 2)
	if _, err := s.BlockBlob("box", sharded.Name("visits", 1)).Delete(ctx, nil); err != nil {
		t.Fatal(err)
	}
	for name, run := range map[string]func(*sharded.Counter) error{
		"get": func(c *sharded.Counter) error { return optest.ErrorOf(c.Get(ctx)) },
		"add": func(c *sharded.Counter) error { return optest.ErrorOf(c.Add(ctx, 1)) },
	} {
		c := open(t, at)
		for range 2 {
			if err := run(c); err == nil || !strings.Contains(err.Error(), "shard 1 of box/visits is missing") {
				t.Errorf("%s: %v", name, err)
			}
		}
	}
}
