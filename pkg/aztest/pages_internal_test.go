package aztest

import (
	"bytes"
	"math/rand/v2"
	"slices"
	"testing"
)

// naive is a page blob as one would write it down: a byte for each byte, a flag for each page.
type naive struct {
	data    []byte
	written []bool
}

func (n *naive) ranges() (out []pageRange) {
	for i, w := range n.written {
		start := int64(i) * pageSize
		switch {
		case !w:
		case len(out) > 0 && out[len(out)-1].End+1 == start:
			out[len(out)-1].End += pageSize
		default:
			out = append(out, pageRange{start, start + pageSize - 1})
		}
	}
	return out
}

// TestPagesAgreeWithAnArray holds the sparse pages against an array, over writes, clears and changes of size that cross
// the borders of chunks; and what a snapshot holds stays.
func TestPagesAgreeWithAnArray(t *testing.T) {
	const limit = 3 * chunkSize / pageSize
	for seed := range uint64(20) {
		rng := rand.New(rand.NewPCG(seed, 0))
		sparse := pages{size: limit * pageSize}
		array := naive{make([]byte, sparse.size), make([]bool, limit)}
		var snapshot pages
		var frozen naive
		for step := range 200 {
			if step%50 == 0 {
				snapshot = sparse.clone()
				frozen = naive{slices.Clone(array.data), slices.Clone(array.written)}
			}
			n := int64(len(array.written))
			first := rng.Int64N(n)
			last := min(n-1, first+rng.Int64N(limit/2))
			from, to := first*pageSize, (last+1)*pageSize-1
			switch rng.IntN(10) {
			case 0:
				size := 1 + rng.IntN(limit)
				sparse.resize(int64(size) * pageSize)
				array.data = append(array.data[:min(size, len(array.written))*pageSize:min(size, len(array.written))*pageSize], make([]byte, max(0, size-len(array.written))*pageSize)...)
				array.written = append(array.written[:min(size, len(array.written)):min(size, len(array.written))], make([]bool, max(0, size-len(array.written)))...)
			case 1, 2, 3:
				sparse.write(from, to, nil)
				clear(array.data[from : to+1])
				clear(array.written[first : last+1])
			default:
				data := bytes.Repeat([]byte{byte(1 + rng.IntN(255))}, int(to+1-from))
				sparse.write(from, to, data)
				copy(array.data[from:], data)
				for p := first; p <= last; p++ {
					array.written[p] = true
				}
			}
			if got := sparse.read(0, sparse.size-1); !bytes.Equal(got, array.data) {
				t.Fatalf("seed %d, step %d: content differs", seed, step)
			}
			if !slices.Equal(sparse.ranges, array.ranges()) {
				t.Fatalf("seed %d, step %d: ranges %v, want %v", seed, step, sparse.ranges, array.ranges())
			}
			if got := snapshot.read(0, snapshot.size-1); !bytes.Equal(got, frozen.data) || !slices.Equal(snapshot.ranges, frozen.ranges()) {
				t.Fatalf("seed %d, step %d: the snapshot has changed", seed, step)
			}
		}
		written, cleared := sparse.since(&snapshot)
		for p := range int64(len(array.written)) {
			before := p < int64(len(frozen.written)) && frozen.written[p]
			same := before && bytes.Equal(array.data[p*pageSize:(p+1)*pageSize], frozen.data[p*pageSize:(p+1)*pageSize])
			if want := array.written[p] && !same; has(written, p*pageSize) != want {
				t.Fatalf("seed %d: page %d written since the snapshot: %t, want %t", seed, p, !want, want)
			}
			if want := before && !array.written[p]; has(cleared, p*pageSize) != want {
				t.Fatalf("seed %d: page %d cleared since the snapshot: %t, want %t", seed, p, !want, want)
			}
		}
	}
}
