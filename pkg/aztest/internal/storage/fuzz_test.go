package storage

import (
	"bytes"
	"slices"
	"testing"
)

// FuzzPages writes and clears any ranges of a page blob, which must read like an array of bytes.
func FuzzPages(f *testing.F) {
	f.Add([]byte{0, 1, 1, 3, 2, 0, 1, 1, 1})
	f.Fuzz(func(t *testing.T, program []byte) {
		const count = 300 // pages: more than two chunks
		p, plain := Pages{Size: count * PageSize}, make([]byte, count*PageSize)
		for len(program) >= 3 {
			first := int64(program[0]) % count
			last := min(first+int64(program[1])%140, count-1)
			data := bytes.Repeat(program[2:3], int((last+1-first)*PageSize))
			if program[2] == 0 {
				clear(plain[first*PageSize : (last+1)*PageSize])
				p.Write(first*PageSize, (last+1)*PageSize-1, nil)
			} else {
				copy(plain[first*PageSize:], data)
				p.Write(first*PageSize, (last+1)*PageSize-1, data)
			}
			program = program[3:]
		}
		if !bytes.Equal(p.Read(0, p.Size-1), plain) {
			t.Error("the pages do not read as what was written")
		}
		if !slices.IsSortedFunc(p.Ranges, func(x, y Range) int { return int(min(1, max(-1, x.Start-y.Start))) }) {
			t.Errorf("ranges %v", p.Ranges)
		}
		for at := int64(0); at < count; at++ {
			written := slices.ContainsFunc(p.Ranges, func(r Range) bool { return r.Start <= at*PageSize && at*PageSize <= r.End })
			if !written && plain[at*PageSize] != 0 {
				t.Errorf("page %d is written, and in no range of %v", at, p.Ranges)
			}
		}
	})
}
