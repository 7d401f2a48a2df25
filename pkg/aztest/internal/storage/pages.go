package storage

import (
	"maps"
	"slices"
)

const (
	PageSize  = 512
	chunkSize = 64 << 10
	MaxPages  = 8 << 40 // 8 TiB, the largest page blob
	MaxRead   = 1 << 30 // of one response here, which is in memory; the service has no such limit
)

// Pages are the content of a page blob. Only written pages take memory. Chunks are replaced, never written to, so that
// snapshots and copies may share them.
type Pages struct {
	Size   int64
	chunks map[int64][]byte
	Ranges []Range // written and not cleared; sorted, not adjacent
	log    []Range // what was written or cleared, in order; clones share its beginning
}

// Range is a range of a page blob, both ends included.
type Range struct {
	Start int64
	End   int64
}

func (p *Pages) Clone() Pages {
	return Pages{Size: p.Size, chunks: maps.Clone(p.chunks), Ranges: slices.Clone(p.Ranges), log: slices.Clip(p.log)}
}

// Read returns a copy of a range, both ends included.
func (p *Pages) Read(first, last int64) []byte {
	out := make([]byte, max(0, last+1-first))
	for at := first; at <= last; {
		chunk, offset := at/chunkSize, at%chunkSize
		n := min(chunkSize-offset, last+1-at)
		if data := p.chunks[chunk]; data != nil {
			copy(out[at-first:], data[offset:offset+n])
		}
		at += n
	}
	return out
}

// Write writes data at first; nil clears the range up to last.
func (p *Pages) Write(first, last int64, data []byte) {
	if p.chunks == nil {
		p.chunks = map[int64][]byte{}
	}
	for at := first; at <= last; {
		chunk, offset := at/chunkSize, at%chunkSize
		n := min(chunkSize-offset, last+1-at)
		switch old := p.chunks[chunk]; {
		case data == nil && (old == nil || n == chunkSize):
			delete(p.chunks, chunk)
		default:
			fresh := make([]byte, chunkSize)
			copy(fresh, old)
			if data == nil {
				clear(fresh[offset : offset+n])
			} else {
				copy(fresh[offset:offset+n], data[at-first:])
			}
			p.chunks[chunk] = fresh
		}
		at += n
	}
	p.log = append(p.log, Range{first, last})
	p.mark(first, last, data != nil)
}

// mark records that a range was written or cleared.
func (p *Pages) mark(first, last int64, written bool) {
	var out []Range
	for _, r := range p.Ranges {
		if r.Start < first {
			out = append(out, Range{r.Start, min(r.End, first-1)})
		}
		if r.End > last {
			out = append(out, Range{max(r.Start, last+1), r.End})
		}
	}
	if written {
		out = append(out, Range{first, last})
	}
	slices.SortFunc(out, func(x, y Range) int { return int(min(1, max(-1, x.Start-y.Start))) })
	p.Ranges = nil
	for _, r := range out {
		if n := len(p.Ranges); n > 0 && p.Ranges[n-1].End+1 == r.Start {
			p.Ranges[n-1].End = r.End
		} else {
			p.Ranges = append(p.Ranges, r)
		}
	}
}

func (p *Pages) Resize(size int64) {
	if size < p.Size {
		p.Write(size, p.Size-1, nil)
	}
	p.Size = size
}

// Within returns the parts of ranges between first and last.
func Within(ranges []Range, first, last int64) []Range {
	var out []Range
	for _, r := range ranges {
		if r.Start <= last && r.End >= first {
			out = append(out, Range{max(r.Start, first), min(r.End, last)})
		}
	}
	return out
}

// Since returns the ranges that were written since an older state, whatever was there before, and the others that were
// cleared since, even if they were also written since.
func (p *Pages) Since(old *Pages) (written, cleared []Range) {
	changed := p.log
	if n := len(old.log); n <= len(p.log) && slices.Equal(old.log, p.log[:n]) {
		changed = p.log[n:]
	} else { // p is not a successor of old: it was created again
		changed = slices.Concat(changed, old.Ranges)
	}
	var all, there Pages
	for _, r := range changed {
		all.mark(r.Start, min(r.End, p.Size-1), r.Start < p.Size)
	}
	for _, r := range all.Ranges {
		for _, one := range Within(p.Ranges, r.Start, r.End) {
			there.mark(one.Start, one.End, true)
		}
	}
	for _, r := range there.Ranges {
		all.mark(r.Start, r.End, false)
	}
	return there.Ranges, all.Ranges
}
