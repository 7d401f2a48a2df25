package optimistic

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore"

	"github.com/azconc/azconc/pkg/aztest/bubble"
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
	for _, s := range []string{"", ",", "x", "x.", ".8D", "x.8D,", "x.zz", "x.q", "x.q!!", "hello world", strings.Repeat("a.", 9), strings.Repeat("a.-,", maxLineageSize) + "a.-"} {
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
		if got := ParseLineage(l.fit(limit)); len(got) != want || want > 0 && got[0].ID != "a" {
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
// keep metadata without adding to it and writers that wipe it, takes one write out of them, and asks what became of it.
// Whatever is said with certainty must be true; and where nobody wipes and the lineage is long enough, nothing may be
// left open.
func TestJudgeNeverErrsOnRandomHistories(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	said := map[fate]int{}
	for n := range 200_000 {
		gentle := n%2 == 0
		size := 2 + rng.IntN(6)
		if gentle {
			size = 16
		}
		versions, writes := 0, 0
		etag := func() azcore.ETag { versions++; return azcore.ETag(fmt.Sprintf(`"0x%X"`, versions)) }
		s := State{Exists: true, ETag: etag()}
		step := func(id string) {
			foreign := rng.IntN(20)
			switch {
			case id == "" && foreign == 0 && !gentle:
				s.Lineage = nil
			case id == "" && foreign == 1 && !gentle:
			default:
				if writes++; id == "" {
					id = fmt.Sprintf("w%d", writes)
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
		wrong := got == committed && !landed || got == refused && landed ||
			got == undecided && s.ETag != base.ETag || got == unprovable && gentle
		if wrong {
			t.Fatalf("judged %d, landed %t, gentle %t\nbase %v\nnow  %v", got, landed, gentle, base, s)
		}
	}
	for _, f := range []fate{unprovable, undecided, committed, refused} {
		if said[f] == 0 {
			t.Errorf("no history led to fate %d: the generator is too tame", f)
		}
	}
}

func TestContendersAreCountedByTheirNames(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		for _, tt := range []struct {
			clients, entries int
			low, high        float64
		}{
			{0, 0, 0, 0}, {1, 32, 0, 0}, {2, 32, 1.9, 2.5}, {8, 32, 5, 13}, {32, 32, 18, 80},
		} {
			rng := rand.New(rand.NewPCG(3, 4))
			var l Lineage
			for range tt.entries {
				l = l.push(32, Entry{ID: newWriteID(uint64(rng.IntN(tt.clients)) * 7919)})
			}
			if got := l.contenders(); got < tt.low || got > tt.high {
				t.Errorf("%d clients: contenders() = %.1f, want %.1f to %.1f", tt.clients, got, tt.low, tt.high)
			}
		}
	})
}

func TestOldEntriesDoNotCountAsContenders(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var l Lineage
		for i := range 16 {
			l = l.push(32, Entry{ID: newWriteID(uint64(i))})
		}
		bubble.Sleep(time.Minute)
		l = l.push(32, Entry{ID: newWriteID(100)})
		if got := l.contenders(); got != 0 {
			t.Errorf("one fresh writer among old ones: contenders() = %v, want 0", got)
		}
		bubble.Sleep(time.Hour)
		if got := l.contenders(); got != 0 {
			t.Errorf("an hour later: contenders() = %v, want 0", got)
		}
	})
}
