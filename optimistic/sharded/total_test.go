package sharded_test

import (
	"fmt"
	"math"
	"testing"

	"github.com/azconc/azconc/optimistic/internal/optest"
	"github.com/azconc/azconc/optimistic/sharded"
	"github.com/azconc/azconc/pkg/aztest"
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
