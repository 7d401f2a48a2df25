package aztest

import (
	"bytes"
	"maps"
	"slices"
)

const (
	pageSize  = 512
	chunkSize = 64 << 10
	maxPages  = 8 << 40 // 8 TiB, the largest page blob
)

// pages are the content of a page blob: only what was written takes memory. Chunks are replaced, never written to, so
// that snapshots and copies may share them.
type pages struct {
	size   int64
	chunks map[int64][]byte
	ranges []pageRange // what was written and not cleared: sorted, apart from one another
}

// pageRange is a range of a page blob, both ends included.
type pageRange struct {
	Start int64
	End   int64
}

func (p *pages) clone() pages {
	return pages{size: p.size, chunks: maps.Clone(p.chunks), ranges: slices.Clone(p.ranges)}
}

// read returns a range, both ends included, as bytes of its own.
func (p *pages) read(first, last int64) []byte {
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

// write puts data at first; nil clears the range up to last.
func (p *pages) write(first, last int64, data []byte) {
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
	p.mark(first, last, data != nil)
}

// mark notes that a range was written or cleared.
func (p *pages) mark(first, last int64, written bool) {
	var out []pageRange
	for _, r := range p.ranges {
		if r.Start < first {
			out = append(out, pageRange{r.Start, min(r.End, first-1)})
		}
		if r.End > last {
			out = append(out, pageRange{max(r.Start, last+1), r.End})
		}
	}
	if written {
		out = append(out, pageRange{first, last})
	}
	slices.SortFunc(out, func(x, y pageRange) int { return int(min(1, max(-1, x.Start-y.Start))) })
	p.ranges = nil
	for _, r := range out {
		if n := len(p.ranges); n > 0 && p.ranges[n-1].End+1 == r.Start {
			p.ranges[n-1].End = r.End
		} else {
			p.ranges = append(p.ranges, r)
		}
	}
}

func (p *pages) resize(size int64) {
	if size < p.size {
		p.write(size, p.size-1, nil)
	}
	p.size = size
}

// within cuts ranges to first and last.
func within(ranges []pageRange, first, last int64) []pageRange {
	var out []pageRange
	for _, r := range ranges {
		if r.Start <= last && r.End >= first {
			out = append(out, pageRange{max(r.Start, first), min(r.End, last)})
		}
	}
	return out
}

// since tells what was written and what was cleared between an older state and this one, page by page.
func (p *pages) since(old *pages) (written, cleared []pageRange) {
	var changed pages // its ranges are those of pages that differ and are there; gone, of those that are not
	var gone pages
	look := func(ranges []pageRange) {
		for _, r := range ranges {
			for at := r.Start; at <= r.End; at += pageSize {
				here, before := has(p.ranges, at), has(old.ranges, at)
				switch {
				case here && (!before || !bytes.Equal(p.read(at, at+pageSize-1), old.read(at, at+pageSize-1))):
					changed.mark(at, at+pageSize-1, true)
				case !here && before && at < p.size:
					gone.mark(at, at+pageSize-1, true)
				}
			}
		}
	}
	look(p.ranges)
	look(old.ranges)
	return changed.ranges, gone.ranges
}

func has(ranges []pageRange, at int64) bool {
	return slices.ContainsFunc(ranges, func(r pageRange) bool { return r.Start <= at && at <= r.End })
}
