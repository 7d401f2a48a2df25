package protocol

import (
	"fmt"
	"math/rand/v2"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore"
)

func TestALineageIsReadBackExactly(t *testing.T) {
	l := LineageOf(
		Entry{ID: "wabc", Base: Over(`"0x8DD1234567890AB"`)},
		Entry{ID: "odef", Base: ""},
		Entry{ID: "w1", Base: Over(UnknownBase)},
		Entry{ID: "w2", Base: Over(`W/"datetime'2026-11-17T00%3A34%3A22.375013Z'"`)},
		Entry{ID: "w3", Base: Over(`"lower 0xabc, and a comma."`)},
		Entry{ID: "w4", Base: Over(`"0x8dd"`)},
		Entry{ID: "w5", Base: Over(`W/"datetime'a,b~c'"`)},
	)
	long, crowded := l, l
	for i := range 200 {
		long = long.Push(4, Entry{ID: NewWriteID(), Base: Over(`"0x8D"`)})
		crowded = crowded.Push(4, Entry{ID: NewWriteID(), Base: Over(`"0x8D"`), Passed: i % 9})
	}
	for _, l := range []Lineage{l, long, crowded, LineageOf(Entry{ID: "w", Base: ""}).Push(1, Entry{ID: "w2", Base: Over(`W/"datetime'a,b~c'"`), Passed: 3})} {
		if got := ParseLineage(l.String(), ""); !reflect.DeepEqual(got, l) {
			t.Errorf("ParseLineage(%q) = %+v, want %+v", l.String(), got, l)
		}
		for _, r := range l.String() {
			if r < '!' || r > '~' {
				t.Errorf("lineage %q holds %q, which a header does not carry", l.String(), r)
			}
		}
	}
	if long.marks != "" || crowded.marks == "" {
		t.Errorf("%d characters of marks without a crowd, %d with a crowd of 9", len(long.marks), len(crowded.marks))
	}
}

func TestAForeignLineageIsReadAsEmpty(t *testing.T) {
	good := LineageOf(Entry{ID: "a", Base: ""}).Push(1, Entry{ID: "b", Base: Over(`"0x1"`)}).String()
	if len(ParseLineage(good, "").Writes) != 1 {
		t.Fatalf("%q is not read", good)
	}
	for _, s := range []string{
		"", ",", "x", "x.", ".-", "x.-,", "x.8D", "x.abcdefghi", "x.abcdefghij,", "x.abcdefgh!j", "hello world", "\xe3.0", "w 1.-", "é.-", strings.Repeat("a.", 9), strings.Repeat("a.-,", maxWrites) + "a.-",
		good[:len(good)-1], good + "!", good + "~", strings.Replace(good, "~2~", "~0~", 1), strings.Replace(good, "~2~", "~9223372036854775807~", 1),
		"~1~~a~-", ",~1~~a~-", "b.-,~7~abcdefg~a~-", "b.-,~2~abcdefghABCDEFGH~a~-", "b.-,~7~abcdef.h~a~-", "b.-,~7~~a~8D", "b.-,~7~~a~-~",
	} {
		if got := ParseLineage(s, ""); !reflect.DeepEqual(got, Lineage{}) {
			t.Errorf("ParseLineage(%q) = %+v, want none", s, got)
		}
	}
	for _, s := range []string{"x", "!!", "\n", "AAAA", "AAAAAAAAAAAAAAA"} {
		if got := ParseLineage("", s); got.Operations != nil {
			t.Errorf("operations %q are read as %v", s, got.Operations)
		}
	}
}

func FuzzLineageEncodingIsReversible(f *testing.F) {
	f.Add(`"0x8D"`, `W/"datetime'2026'"`, "?", "")
	f.Add(`"0x"`, `W/"datetime'"`, `W/"datetime''"`, "")                         // the prefix and the suffix overlap
	f.Add(`W/"datetime'a b'"`, `W/"datetime'a~b'"`, `W/"datetime'2026,~1'"`, "") // characters that a lineage cannot hold
	f.Fuzz(func(t *testing.T, a, b, c, foreign string) {
		l := LineageOf(Entry{ID: "w1", Base: Over(azcore.ETag(a))}, Entry{ID: "w2", Base: Over(azcore.ETag(b))}, Entry{ID: "w3", Base: Over(azcore.ETag(c))})
		for _, l := range []Lineage{l, l.Push(2, Entry{ID: "w4", Base: Over(azcore.ETag(c))})} {
			if got := ParseLineage(l.String(), ""); !reflect.DeepEqual(got, l) {
				t.Errorf("ParseLineage(%q) = %+v, want %+v", l.String(), got, l)
			}
		}
		if l := ParseLineage(foreign, foreign); len(l.Writes) > 0 && len(ParseLineage(l.String(), "").Writes) != len(l.Writes) {
			t.Errorf("%q is read as %+v, which is not read back", foreign, l)
		}
	})
}

func TestPushKeepsTheNewestAndDropsTheOldest(t *testing.T) {
	var l Lineage
	for i := range 10 {
		l = l.Push(4, Entry{ID: fmt.Sprint(i)})
	}
	var ids []string
	for _, e := range l.Writes {
		ids = append(ids, e.ID)
	}
	if want := []string{"9", "8", "7", "6"}; !slices.Equal(ids, want) || l.count != 10 || l.first.ID != "0" {
		t.Errorf("ids = %v of %d, the first %s; want %v of 10, the first 0", ids, l.count, l.first.ID, want)
	}
}

func TestPushDoesNotChangeTheOriginal(t *testing.T) {
	l := LineageOf(Entry{ID: "a"}, Entry{ID: "b"})
	_ = l.Push(2, Entry{ID: "c"})
	if want := LineageOf(Entry{ID: "a"}, Entry{ID: "b"}); !reflect.DeepEqual(l, want) {
		t.Errorf("lineage became %v, want %v", l, want)
	}
}

func TestFitShortensAtTheOldEnd(t *testing.T) {
	l := LineageOf(Entry{ID: "a", Base: Over(`"0x1"`)}, Entry{ID: "b", Base: Over(`"0x2"`)}, Entry{ID: "c", Base: Over(`"0x3"`)})
	for limit, want := range map[int]int{100: 3, 38: 3, 37: 1, 29: 1, 12: 1, 11: 0, -5: 0} {
		if got := ParseLineage(l.Fit(limit), "").Writes; len(got) != want || want > 0 && got[0].ID != "a" {
			t.Errorf("fit(%d) = %v, want the first %d entries", limit, got, want)
		}
	}
	l = l.Push(2, Entry{ID: "d", Base: Over(`"0x4"`), Passed: 1}).Push(2, Entry{ID: "e", Base: Over(`"0x5"`), Passed: 1})
	whole := l.String()
	e, d, summary := "e+1."+Over(`"0x5"`), ",d+1."+Over(`"0x4"`), "~c~"+Over(`"0x3"`)
	if want := e + d + ",~5~" + mark("a") + mark("b") + mark("c") + summary; whole != want {
		t.Fatalf("the lineage is %q, want %q", whole, want)
	}
	for limit, want := range map[int]string{
		len(whole) - 1: e + d + ",~5~" + mark("a") + mark("b") + summary,
		54:             e + d + ",~5~" + mark("a") + summary,
		46:             e + d + ",~5~" + summary,
		45:             e + ",~5~" + summary,
		30:             e,
		14:             e,
		13:             "",
	} {
		if got := l.Fit(limit); got != want {
			t.Errorf("fit(%d) = %q, want %q", limit, got, want)
		}
	}
}

// past plays one resource with writers that keep the lineage, writers that keep metadata without adding to it,
// writers that wipe it and writers that put back old metadata.
type past struct {
	rng      *rand.Rand
	size     int
	crowd    int  // the bound of Passed
	foreign  bool // wipes, and keeps without adding
	restores bool
	versions int
	state    State
	old      []Lineage
}

func (h *past) etag() azcore.ETag {
	h.versions++
	return azcore.ETag(fmt.Sprintf(`"0x%X"`, h.versions))
}

func (h *past) step(ours string) {
	h.old = append(h.old, h.state.Lineage)
	switch dice := h.rng.IntN(20); {
	case ours == "" && h.foreign && dice == 0:
		h.state.Lineage = Lineage{}
	case ours == "" && h.foreign && dice == 1:
	case ours == "" && h.restores && dice == 2:
		h.state.Lineage = h.old[h.rng.IntN(len(h.old))]
	default:
		id := ours
		if id == "" {
			id = NewWriteID()
		}
		passed := 0
		if h.crowd > 0 {
			passed = h.rng.IntN(h.crowd)
		}
		h.state.Lineage = ParseLineage(h.state.Lineage.Push(h.size, Entry{ID: id, Base: Over(h.state.ETag), Passed: passed}).String(), "")
	}
	h.state.ETag = h.etag()
}

// TestJudgeNeverErrsOnRandomHistories takes one write out of histories and asks what became of it. Whatever is said with
// certainty must be true. Where all writers keep the lineage, nothing may be left open as far as it reaches.
func TestJudgeNeverErrsOnRandomHistories(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	said := map[Fate]int{}
	histories := 20_000
	if testing.Short() {
		histories = 4_000
	}
	for n := range histories {
		h := past{rng: rng, size: 1 + rng.IntN(6), crowd: rng.IntN(12), foreign: n%3 != 0}
		h.state = State{Exists: true, ETag: h.etag()}
		for range rng.IntN(30) {
			h.step("")
		}
		base := h.state
		landed := rng.IntN(2) == 0
		ours := NewWriteID()
		if landed {
			h.step(ours)
		}
		after := rng.IntN(8)
		if n%2 == 0 {
			after = rng.IntN(60)
		}
		for range after {
			h.step("")
		}
		got, _ := Change{Base: base, ID: ours, Traced: true, strict: n%5 == 0}.judge(h.state)
		said[got]++
		reached := after+1 < h.state.Lineage.reach()
		certain := !h.foreign && reached && len(base.Lineage.Writes) > 0
		wrong := got == Committed && !landed || got == Refused && landed ||
			got == Undecided && h.state.ETag != base.ETag || got == Unprovable && certain
		if wrong {
			t.Fatalf("judged %d, landed %t, %d after, %+v\nbase %+v\nnow  %+v", got, landed, after, h, base, h.state)
		}
	}
	for _, f := range []Fate{Unprovable, Undecided, Committed, Refused} {
		if said[f] == 0 {
			t.Errorf("no history led to fate %d: the generator is too tame", f)
		}
	}
}

// TestRestoredMetadataIsNoticed: a writer outside azconc reads the metadata, our write follows, and it writes what it has
// read, without a condition. As long as it has read them before the version that our write replaced, that is noticed.
// Where it has read them at that very version, only the strict judgement notices, and the package says so.
func TestRestoredMetadataIsNoticed(t *testing.T) {
	missed := 0
	for n := range 4000 {
		h := past{rng: rand.New(rand.NewPCG(uint64(n), 3)), size: 2 + n%8, crowd: 6}
		h.state = State{Exists: true, ETag: h.etag()}
		for range 10 {
			h.step("")
		}
		stale := h.old[len(h.old)-1-h.rng.IntN(4)] // of the versions before the base
		exact, strict := n%10 == 0, n%4 == 0
		base := h.state
		if exact {
			stale = base.Lineage
		}
		ours := NewWriteID()
		h.step(ours)
		h.state.Lineage, h.state.ETag = stale, h.etag()
		for range h.rng.IntN(3) {
			h.step("")
		}
		switch got, _ := (Change{Base: base, ID: ours, Traced: true, strict: strict}).judge(h.state); {
		case got == Refused && exact && !strict:
			missed++
		case got == Refused:
			t.Fatalf("history %d: a write that was applied is judged refused\nbase %+v\nnow  %+v", n, base, h.state)
		}
	}
	if missed == 0 {
		t.Error("not even metadata of the base itself deceive: the doc comment promises too little")
	}
}

// TestAbsenceProvesNothingAboutAnUntracedWrite: pages, say, carry no lineage, so that a history without them says
// nothing.
func TestAbsenceProvesNothingAboutAnUntracedWrite(t *testing.T) {
	base := State{Exists: true, ETag: `"0x1"`}
	now := State{Exists: true, ETag: `"0x2"`, Lineage: LineageOf(Entry{ID: NewWriteID()})}
	if f, _ := (Change{Base: base, ID: NewWriteID()}).judge(now); f != Unprovable {
		t.Errorf("without a trace: %d, want unprovable", f)
	}
}

// TestTheWriteThatReplacedABaseProvesARefusal, although the lineage does not reach back to the base's own writes.
func TestTheWriteThatReplacedABaseProvesARefusal(t *testing.T) {
	w := Change{Base: State{Exists: true, ETag: `"0x1"`}, ID: "w-mine", Traced: true}
	now := State{Exists: true, ETag: `"0x3"`, Lineage: Lineage{Writes: []Entry{{ID: "w-b", Base: Over(`"0x2"`)}, {ID: "w-a", Base: Over(`"0x1"`)}}}}
	if f, why := w.judge(now); f != Refused {
		t.Errorf("judge = %v (%s), want refused", f, why)
	}
	now.Lineage.Writes = now.Lineage.Writes[:1]
	if f, why := w.judge(now); f != Unprovable {
		t.Errorf("judge without the write over the base = %v (%s), want unprovable", f, why)
	}
}

// TestTheFirstWriteOverABaseDecides, wherever the lineage shows it: as an entry, as a mark, or not at all.
func TestTheFirstWriteOverABaseDecides(t *testing.T) {
	var base Lineage
	for range 5 {
		base = base.Push(4, Entry{ID: NewWriteID(), Base: Over(`"0x1"`)})
	}
	ours := Entry{ID: NewWriteID(), Base: Over(`"0x2"`)}
	theirs, foreign := Entry{ID: NewWriteID(), Base: Over(`"0x2"`)}, Entry{ID: NewWriteID(), Base: Over(`"0x7"`)}
	chain := func(first Entry, more int) Lineage {
		l := base.Push(4, first)
		for range more {
			l = ParseLineage(l.Push(4, Entry{ID: NewWriteID(), Base: Over(`"0x3"`), Passed: 3}).String(), "")
		}
		return l
	}
	restarted := chain(theirs, 8)
	restarted.first.ID = "another"
	refilled := base // cut back by a foreign writer, and filled again
	refilled.count--
	refilled.Writes = refilled.Writes[1:]
	for range 10 {
		refilled = refilled.Push(4, Entry{ID: NewWriteID(), Base: Over(`"0x5"`), Passed: 3})
	}
	for name, tt := range map[string]struct {
		now          Lineage
		want, strict Fate
	}{
		"ours, as an entry":                 {chain(ours, 2), Committed, Committed},
		"ours, as a mark":                   {chain(ours, 8), Committed, Committed},
		"another's, as an entry":            {chain(theirs, 2), Refused, Refused},
		"another's, as a mark":              {chain(theirs, 8), Refused, Refused},
		"over a foreign write, as an entry": {chain(foreign, 2), Refused, Unprovable},
		"over a foreign write, as a mark":   {chain(foreign, 8), Refused, Refused},
		"none: a foreign writer kept it":    {base, Refused, Unprovable},
		"out of reach":                      {chain(theirs, 40), Unprovable, Unprovable},
		"in another chain":                  {restarted, Unprovable, Unprovable},
		"in a chain that was cut back":      {refilled, Unprovable, Unprovable},
		"an older lineage":                  {LineageOf(base.Writes[1:]...), Unprovable, Unprovable},
	} {
		for _, strict := range []bool{false, true} {
			want := tt.want
			if strict {
				want = tt.strict
			}
			w := Change{Base: State{Exists: true, ETag: `"0x2"`, Lineage: base}, ID: ours.ID, Traced: true, strict: strict}
			if f, why := w.judge(State{Exists: true, ETag: `"0x9"`, Lineage: tt.now}); f != want {
				t.Errorf("%s, strict %v: judged %d (%s), want %d", name, strict, f, why, want)
			}
		}
	}
}

// TestAMarkIsAFunctionOfTheID that spreads evenly: a judgement compares two of them.
func TestAMarkIsAFunctionOfTheID(t *testing.T) {
	seen := map[string]bool{}
	for range 100_000 {
		id := NewWriteID()
		if m := mark(id); len(m) != markSize || m != mark(id) || strings.Trim(m, markAlphabet) != "" {
			t.Fatalf("mark(%q) = %q", id, m)
		}
		seen[mark(id)] = true
	}
	if len(seen) < 100_000 {
		t.Errorf("%d different marks of 100,000 ids", len(seen))
	}
}

// TestTheLineageGrowsWithTheCrowd and shrinks when it has left, and stays below 4 KiB whatever happens.
func TestTheLineageGrowsWithTheCrowd(t *testing.T) {
	for name, base := range map[string]azcore.ETag{"blob": `"0x8DD1234567890AB"`, "entity": `W/"datetime'2026-11-17T00%3A34%3A22.3750131Z'"`} {
		var l Lineage
		push := func(n, passed int) {
			for range n {
				l = ParseLineage(l.Push(LineageSize, Entry{ID: NewWriteID(), Base: Over(base), Passed: passed}).String(), "")
			}
		}
		push(100, 0)
		alone := len(l.String())
		if l.marks != "" || l.count != 100 {
			t.Errorf("%s: a lone writer's lineage has %d bytes of marks after %d writes", name, len(l.marks), l.count)
		}
		push(100, 7)
		if got, want := l.reach(), LineageSize+4*7; got != want {
			t.Errorf("%s: with 8 writers the lineage reaches over %d writes, want %d", name, got, want)
		}
		push(2000, 255)
		most := len(l.String())
		if most >= 4<<10 || l.reach() < 300 {
			t.Errorf("%s: with 256 writers the lineage takes %d bytes and reaches over %d writes", name, most, l.reach())
		}
		push(LineageSize, 0)
		if got := len(l.String()); got > alone+2 || l.marks != "" {
			t.Errorf("%s: %d bytes after the crowd has left, %d before it came", name, got, alone)
		}
		t.Logf("%s: %d bytes alone, %d in a crowd of 256", name, alone, most)
	}
}
