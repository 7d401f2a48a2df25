package optimistic

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore"
)

func TestLineageGivesBackExactlyWhatItWasGiven(t *testing.T) {
	l := Lineage{
		{ID: "wabc", Base: `"0x8DD1234567890AB"`},
		{ID: "odef", Base: ""},
		{ID: "w1", Base: unknownBase},
		{ID: "w2", Base: `W/"datetime'2026-11-17T00%3A34%3A22.375013Z'"`},
		{ID: "w3", Base: `"lower 0xabc, and a comma."`},
		{ID: "w4", Base: `"0x8dd"`},
		{ID: "w5", Base: `W/"datetime'a,b'"`},
	}
	if got := ParseLineage(l.String()); !slices.Equal(got, l) {
		t.Errorf("ParseLineage(%q) = %v, want %v", l.String(), got, l)
	}
	for _, r := range l.String() {
		if r < '!' || r > '~' {
			t.Errorf("lineage %q holds %q, which a header does not carry", l.String(), r)
		}
	}
}

func TestAForeignLineageIsEmptyNotWrong(t *testing.T) {
	for _, s := range []string{"", ",", "x", "x.", ".8D", "x.8D,", "x.zz", "x.q", "x.q!!", "hello world", strings.Repeat("a.", 9)} {
		if got := ParseLineage(s); got != nil {
			t.Errorf("ParseLineage(%q) = %v, want none", s, got)
		}
	}
}

func FuzzLineageEncodingIsReversible(f *testing.F) {
	f.Add(`"0x8D"`, `W/"datetime'2026'"`, "?")
	f.Fuzz(func(t *testing.T, a, b, c string) {
		l := Lineage{{ID: "w1", Base: azcore.ETag(a)}, {ID: "w2", Base: azcore.ETag(b)}, {ID: "w3", Base: azcore.ETag(c)}}
		if got := ParseLineage(l.String()); !slices.Equal(got, l) {
			t.Errorf("ParseLineage(%q) = %q, want %q", l.String(), got, l)
		}
	})
}

func TestPushKeepsTheNewestAndDropsTheOldest(t *testing.T) {
	var l Lineage
	for i := range 10 {
		l = l.push(4, Entry{ID: fmt.Sprint(i)})
	}
	var ids []string
	for _, e := range l {
		ids = append(ids, e.ID)
	}
	if want := []string{"9", "8", "7", "6"}; !slices.Equal(ids, want) {
		t.Errorf("ids = %v, want %v", ids, want)
	}
}

func TestPushLeavesTheOriginalAlone(t *testing.T) {
	l := Lineage{{ID: "a"}, {ID: "b"}}
	_ = l.push(2, Entry{ID: "c"})
	if want := (Lineage{{ID: "a"}, {ID: "b"}}); !slices.Equal(l, want) {
		t.Errorf("lineage became %v, want %v", l, want)
	}
}

func TestFitShortensAtTheOldEnd(t *testing.T) {
	l := Lineage{{ID: "a", Base: `"0x1"`}, {ID: "b", Base: `"0x2"`}, {ID: "c", Base: `"0x3"`}}
	for limit, want := range map[int]int{100: 3, 11: 3, 10: 2, 7: 2, 6: 1, 3: 1, 2: 0, -5: 0} {
		if got := l.fit(limit); len(got) != want || want > 0 && got[0].ID != "a" {
			t.Errorf("fit(%d) = %v, want the first %d entries", limit, got, want)
		}
	}
}

func TestTheETagOfAWriteIsTheBaseOfItsSuccessor(t *testing.T) {
	l := Lineage{{ID: "c", Base: `"0x3"`}, {ID: "b2", Base: `"0x2"`}, {ID: "b1", Base: `"0x2"`}, {ID: "a", Base: `"0x1"`}}
	for id, want := range map[string]azcore.ETag{"a": `"0x2"`, "b1": `"0x3"`, "b2": `"0x3"`, "c": `"0x9"`} {
		if got := l.produced(id, `"0x9"`); got != want {
			t.Errorf("produced(%s) = %s, want %s", id, got, want)
		}
	}
}

// TestJudgeNeverErrsOnRandomHistories plays histories of one resource with writers that keep the lineage, writers that
// keep metadata without adding to it, writers that wipe it and deletions, takes one write out of them, and asks what
// became of it. Whatever is said with certainty must be true.
func TestJudgeNeverErrsOnRandomHistories(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	said := map[fate]int{}
	for range 200_000 {
		size := 2 + rng.IntN(6)
		next := 0
		etag := func() azcore.ETag { next++; return azcore.ETag(fmt.Sprintf(`"0x%X"`, next)) }
		s := State{Exists: true, ETag: etag()}
		step := func(id string) {
			switch n := rng.IntN(20); {
			case id == "" && n == 0: // a foreign writer that replaces all metadata
				s.Lineage = nil
			case id == "" && n == 1: // one that keeps it
			default:
				if id == "" {
					id = fmt.Sprintf("w%d", next)
				}
				s.Lineage = s.Lineage.push(size, Entry{ID: id, Base: s.ETag})
			}
			s.ETag = etag()
		}
		for range rng.IntN(5) {
			step("")
		}
		base := s
		landed := rng.IntN(2) == 0
		if landed {
			step("ours")
		}
		for range rng.IntN(8) {
			step("")
		}
		got, _ := write{base: base, id: "ours"}.judge(s)
		said[got]++
		switch got {
		case committed:
			if !landed {
				t.Fatalf("judged committed, was not: base %v, now %v", base, s)
			}
		case refused:
			if landed {
				t.Fatalf("judged refused, was committed: base %v, now %v", base, s)
			}
		case undecided:
			if landed || s.ETag != base.ETag {
				t.Fatalf("judged undecided although the version moved on: base %v, now %v", base, s)
			}
		}
	}
	for _, f := range []fate{unprovable, undecided, committed, refused} {
		if said[f] == 0 {
			t.Errorf("no history led to fate %d: the generator is too tame", f)
		}
	}
	if said[unprovable] > said[committed] {
		t.Errorf("%d unprovable against %d committed: the lineage proves too little", said[unprovable], said[committed])
	}
}
