package change

import (
	"encoding/json"
	"strings"

	"github.com/aymanbagabas/go-udiff"
)

// hunk replaces the base's lines [start, end) by lines.
type hunk struct {
	start, end int
	lines      []string
}

// Merge3 applies to base the changes of mine and of theirs. Different changes of the same or of neighbouring lines do
// not merge: both versions are then put between conflict markers, and clean is false. It merges lines, because a merge
// of characters would turn 15 and 20 into 25.
func Merge3(base, mine, theirs string) (merged string, clean bool) {
	lines := splitLines(base)
	a, b := hunks(base, mine), hunks(base, theirs)
	var out strings.Builder
	clean = true
	at := 0
	for len(a) > 0 || len(b) > 0 {
		start, end := nextRegion(a, b)
		var inA, inB []hunk
		// The region grows as long as hunks of either side touch it.
		for grown := true; grown; {
			grown = false
			for len(a) > 0 && a[0].start <= end {
				inA, end, a, grown = append(inA, a[0]), max(end, a[0].end), a[1:], true
			}
			for len(b) > 0 && b[0].start <= end {
				inB, end, b, grown = append(inB, b[0]), max(end, b[0].end), b[1:], true
			}
		}
		out.WriteString(strings.Join(lines[at:start], ""))
		old := strings.Join(lines[start:end], "")
		left, right := applyHunks(lines, start, end, inA), applyHunks(lines, start, end, inB)
		switch {
		case len(inB) == 0, left == right:
			out.WriteString(left)
		case len(inA) == 0:
			out.WriteString(right)
		default:
			clean = false
			out.WriteString(markers(left, old, right))
		}
		at = end
	}
	out.WriteString(strings.Join(lines[at:], ""))
	merged = out.String()
	if clean && json.Valid([]byte(mine)) && json.Valid([]byte(theirs)) && !json.Valid([]byte(merged)) {
		return markers(mine, base, theirs), false
	}
	return merged, clean
}

func nextRegion(a, b []hunk) (start, end int) {
	switch {
	case len(b) == 0 || len(a) > 0 && a[0].start <= b[0].start:
		return a[0].start, a[0].end
	default:
		return b[0].start, b[0].end
	}
}

func applyHunks(lines []string, start, end int, hs []hunk) string {
	var out strings.Builder
	for _, h := range hs {
		out.WriteString(strings.Join(lines[start:h.start], "") + strings.Join(h.lines, ""))
		start = h.end
	}
	return out.String() + strings.Join(lines[start:end], "")
}

const (
	mineMarker   = "<<<<<<< yours"
	baseMarker   = "||||||| the common base"
	middleMarker = "======="
	theirsMarker = ">>>>>>> theirs"
)

func markers(mine, base, theirs string) string {
	end := func(s string) string {
		if s != "" && !strings.HasSuffix(s, "\n") {
			return s + "\n"
		}
		return s
	}
	return mineMarker + "\n" + end(mine) + baseMarker + "\n" + end(base) + middleMarker + "\n" + end(theirs) + theirsMarker + "\n"
}

// HasMarkers reports whether text still has conflict markers.
func HasMarkers(s string) bool {
	for _, line := range splitLines(s) {
		if line = strings.TrimRight(line, "\r\n"); line == mineMarker || line == theirsMarker {
			return true
		}
	}
	return false
}

func splitLines(s string) []string {
	lines := strings.SplitAfter(s, "\n")
	if lines[len(lines)-1] == "" {
		lines = lines[:len(lines)-1]
	}
	return lines
}

// hunks returns the changes from base to other, by whole lines.
func hunks(base, other string) []hunk {
	// Without context each hunk of a unified diff is one change. The edits come from a diff of the same text, so they fit.
	diff, err := udiff.ToUnifiedDiff("", "", base, udiff.Strings(base, other), 0)
	if err != nil {
		return []hunk{{start: 0, end: len(splitLines(base)), lines: splitLines(other)}}
	}
	out := make([]hunk, 0, len(diff.Hunks))
	for _, d := range diff.Hunks {
		h := hunk{start: d.FromLine - 1, end: d.FromLine - 1}
		for _, l := range d.Lines {
			switch l.Kind {
			case udiff.Delete:
				h.end++
			case udiff.Insert:
				h.lines = append(h.lines, l.Content)
			}
		}
		out = append(out, h.trimmed(splitLines(base)))
	}
	return out
}

// trimmed removes unchanged lines from a hunk. The diff works by characters, so an added line may appear as one line replaced by two.
func (h hunk) trimmed(base []string) hunk {
	for h.start < h.end && len(h.lines) > 0 && base[h.start] == h.lines[0] {
		h.start, h.lines = h.start+1, h.lines[1:]
	}
	for h.start < h.end && len(h.lines) > 0 && base[h.end-1] == h.lines[len(h.lines)-1] {
		h.end, h.lines = h.end-1, h.lines[:len(h.lines)-1]
	}
	return h
}
