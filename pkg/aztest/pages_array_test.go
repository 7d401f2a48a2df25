package aztest_test

import (
	"bytes"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/azconc/azconc/pkg/aztest/internal/storage"
)

// naive is the obvious implementation: a byte for each byte, a flag for each page.
type naive struct {
	data    []byte
	written []bool
}

func (n *naive) ranges() (out []storage.Range) {
	for i, w := range n.written {
		start := int64(i) * storage.PageSize
		switch {
		case !w:
		case len(out) > 0 && out[len(out)-1].End+1 == start:
			out[len(out)-1].End += storage.PageSize
		default:
			out = append(out, storage.Range{Start: start, End: start + storage.PageSize - 1})
		}
	}
	return out
}

// TestPagesAgreeWithAnArray compares the sparse pages with an array, over writes, clears and changes of size that cross
// the borders of chunks. A snapshot must keep its content.
func TestPagesAgreeWithAnArray(t *testing.T) {
	const limit = 3 * (64 << 10) / storage.PageSize // three chunks
	for seed := range uint64(20) {
		rng := rand.New(rand.NewPCG(seed, 0))
		sparse := storage.Pages{Size: limit * storage.PageSize}
		array := naive{make([]byte, sparse.Size), make([]bool, limit)}
		var snapshot storage.Pages
		var frozen naive
		touched := map[int64]bool{} // since the snapshot
		for step := range 200 {
			if step%50 == 0 {
				snapshot = sparse.Clone()
				clear(touched)
				frozen = naive{slices.Clone(array.data), slices.Clone(array.written)}
			}
			n := int64(len(array.written))
			first := rng.Int64N(n)
			last := min(n-1, first+rng.Int64N(limit/2))
			from, to := first*storage.PageSize, (last+1)*storage.PageSize-1
			switch rng.IntN(10) {
			case 0:
				size := 1 + rng.IntN(limit)
				for p := int64(size); p < n; p++ {
					touched[p] = true
				}
				sparse.Resize(int64(size) * storage.PageSize)
				array.data = append(array.data[:min(size, len(array.written))*storage.PageSize:min(size, len(array.written))*storage.PageSize], make([]byte, max(0, size-len(array.written))*storage.PageSize)...)
				array.written = append(array.written[:min(size, len(array.written)):min(size, len(array.written))], make([]bool, max(0, size-len(array.written)))...)
			case 1, 2, 3:
				sparse.Write(from, to, nil)
				for p := first; p <= last; p++ {
					touched[p] = true
				}
				clear(array.data[from : to+1])
				clear(array.written[first : last+1])
			default:
				data := bytes.Repeat([]byte{byte(1 + rng.IntN(255))}, int(to+1-from))
				sparse.Write(from, to, data)
				copy(array.data[from:], data)
				for p := first; p <= last; p++ {
					array.written[p], touched[p] = true, true
				}
			}
			if got := sparse.Read(0, sparse.Size-1); !bytes.Equal(got, array.data) {
				t.Fatalf("seed %d, step %d: content differs", seed, step)
			}
			if !slices.Equal(sparse.Ranges, array.ranges()) {
				t.Fatalf("seed %d, step %d: ranges %v, want %v", seed, step, sparse.Ranges, array.ranges())
			}
			if got := snapshot.Read(0, snapshot.Size-1); !bytes.Equal(got, frozen.data) || !slices.Equal(snapshot.Ranges, frozen.ranges()) {
				t.Fatalf("seed %d, step %d: the snapshot has changed", seed, step)
			}
		}
		written, cleared := sparse.Since(&snapshot)
		for p := range int64(len(array.written)) {
			if want := array.written[p] && touched[p]; has(written, p*storage.PageSize) != want {
				t.Fatalf("seed %d: page %d written since the snapshot: %t, want %t", seed, p, !want, want)
			}
			if want := !array.written[p] && touched[p]; has(cleared, p*storage.PageSize) != want {
				t.Fatalf("seed %d: page %d cleared since the snapshot: %t, want %t", seed, p, !want, want)
			}
		}
	}
}

func has(ranges []storage.Range, at int64) bool {
	return slices.ContainsFunc(ranges, func(r storage.Range) bool { return r.Start <= at && at <= r.End })
}

// FuzzPages writes and clears any ranges of a page blob, which must read like an array of bytes.
func FuzzPages(f *testing.F) {
	f.Add([]byte{0, 1, 1, 3, 2, 0, 1, 1, 1})
	f.Fuzz(func(t *testing.T, program []byte) {
		const count = 300 // pages: more than two chunks
		p, plain := storage.Pages{Size: count * storage.PageSize}, make([]byte, count*storage.PageSize)
		for len(program) >= 3 {
			first := int64(program[0]) % count
			last := min(first+int64(program[1])%140, count-1)
			data := bytes.Repeat(program[2:3], int((last+1-first)*storage.PageSize))
			if program[2] == 0 {
				clear(plain[first*storage.PageSize : (last+1)*storage.PageSize])
				p.Write(first*storage.PageSize, (last+1)*storage.PageSize-1, nil)
			} else {
				copy(plain[first*storage.PageSize:], data)
				p.Write(first*storage.PageSize, (last+1)*storage.PageSize-1, data)
			}
			program = program[3:]
		}
		if !bytes.Equal(p.Read(0, p.Size-1), plain) {
			t.Error("the pages do not read as what was written")
		}
		if !slices.IsSortedFunc(p.Ranges, func(x, y storage.Range) int { return int(min(1, max(-1, x.Start-y.Start))) }) {
			t.Errorf("ranges %v", p.Ranges)
		}
		for at := int64(0); at < count; at++ {
			written := slices.ContainsFunc(p.Ranges, func(r storage.Range) bool { return r.Start <= at*storage.PageSize && at*storage.PageSize <= r.End })
			if !written && plain[at*storage.PageSize] != 0 {
				t.Errorf("page %d is written, and in no range of %v", at, p.Ranges)
			}
		}
	})
}
