package protocol

import (
	"crypto/sha256"
	"fmt"
	"math/rand/v2"
	"reflect"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore"

	"github.com/azconc/azconc/pkg/aztest/bubble"
)

func TestALineageIsReadBackExactly(t *testing.T) {
	l := LineageOf(
		Entry{ID: "wabc", Base: `"0x8DD1234567890AB"`},
		Entry{ID: "odef", Base: ""},
		Entry{ID: "w1", Base: UnknownBase},
		Entry{ID: "w2", Base: `W/"datetime'2026-11-17T00%3A34%3A22.375013Z'"`},
		Entry{ID: "w3", Base: `"lower 0xabc, and a comma."`},
		Entry{ID: "w4", Base: `"0x8dd"`},
		Entry{ID: "w5", Base: `W/"datetime'a,b~c'"`},
	)
	long := l
	for i := range 200 {
		long = long.Push(4, Entry{ID: NewWriteID(uint64(i)), Base: `"0x8D"`})
	}
	for _, l := range []Lineage{l, long, LineageOf(Entry{ID: "w", Base: ""}).Push(1, Entry{ID: "w2", Base: `W/"datetime'a,b~c'"`})} {
		if got := ParseLineage(l.String(), ""); !reflect.DeepEqual(got, l) {
			t.Errorf("ParseLineage(%q) = %+v, want %+v", l.String(), got, l)
		}
		for _, r := range l.String() {
			if r < '!' || r > '~' {
				t.Errorf("lineage %q holds %q, which a header does not carry", l.String(), r)
			}
		}
	}
	if n := len(long.String()); n > 4*40+clientsKept*markSize+60 {
		t.Errorf("the summary takes %d bytes", n)
	}
}

// TestALineageOfAnEarlierVersionIsRead: it has no summary, and operations in the place of writes.
func TestALineageOfAnEarlierVersionIsRead(t *testing.T) {
	l := ParseLineage("oabcdefghijklmnop.8DD2,wabc.8DD1,wdef.-", "")
	if len(l.Writes) != 3 || l.count != 3 || l.first != (Entry{ID: "wdef"}) || l.clients != "" {
		t.Errorf("read as %+v", l)
	}
	sum := sha256.Sum256([]byte("op"))
	legacy := "o" + idEncoding.EncodeToString(sum[:10])
	if old := ParseLineage(legacy+".8DD2", ""); !old.Performed(NewIntent("metadata", "op")) || old.Performed(NewIntent("", "other")) {
		t.Error("an operation that an earlier version remembered is not found, or found under another name")
	}
}

func TestAForeignLineageIsReadAsEmpty(t *testing.T) {
	good := LineageOf(Entry{ID: "a", Base: ""}).Push(1, Entry{ID: "b", Base: `"0x1"`}).String()
	if len(ParseLineage(good, "").Writes) != 1 {
		t.Fatalf("%q is not read", good)
	}
	for _, s := range []string{
		"", ",", "x", "x.", ".8D", "x.8D,", "x.zz", "x.q", "x.q!!", "hello world", "\xe3.0", "w 1.-", "é.-", strings.Repeat("a.", 9), strings.Repeat("a.-,", maxLineageSize) + "a.-",
		good[:len(good)-1], good + "!", strings.Replace(good, "~2~", "~0~", 1), strings.Replace(good, "~0~", "~-1~", 1), strings.Replace(good, "~0~", "~0~abc", 1), "~1~0~~a~-", ",~1~0~~a~-",
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
		l := LineageOf(Entry{ID: "w1", Base: azcore.ETag(a)}, Entry{ID: "w2", Base: azcore.ETag(b)}, Entry{ID: "w3", Base: azcore.ETag(c)})
		for _, l := range []Lineage{l, l.Push(2, Entry{ID: "w4", Base: azcore.ETag(c)})} {
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

// TestTheLatestWriteOfEachClientIsKept however many writes of others follow, in the order of those writes.
func TestTheLatestWriteOfEachClientIsKept(t *testing.T) {
	var l Lineage
	latest := map[int]string{}
	rng := rand.New(rand.NewPCG(1, 1))
	for range 1000 {
		client := rng.IntN(40)
		id := NewWriteID(uint64(client))
		l = l.Push(8, Entry{ID: id})
		latest[client] = id
	}
	for client, id := range latest {
		if !l.holds(id) {
			t.Errorf("the latest write of client %d is gone", client)
		}
	}
	if got := len(l.marks()) / markSize; got != 40 || l.dropped != 0 || l.count != 1000 {
		t.Errorf("%d clients, %d dropped, %d writes", got, l.dropped, l.count)
	}
	for i := range 200 {
		l = l.Push(8, Entry{ID: NewWriteID(uint64(1000 + i))})
	}
	if n := len(l.clients) / markSize; n != clientsKept || l.dropped != 240-8-clientsKept {
		t.Errorf("%d clients are kept and %d dropped", n, l.dropped)
	}
}

func TestFitShortensAtTheOldEnd(t *testing.T) {
	l := LineageOf(Entry{ID: "a", Base: `"0x1"`}, Entry{ID: "b", Base: `"0x2"`}, Entry{ID: "c", Base: `"0x3"`})
	for limit, want := range map[int]int{100: 3, 11: 3, 10: 2, 7: 2, 6: 1, 3: 1, 2: 0, -5: 0} {
		if got := ParseLineage(l.Fit(limit), "").Writes; len(got) != want || want > 0 && got[0].ID != "a" {
			t.Errorf("fit(%d) = %v, want the first %d entries", limit, got, want)
		}
	}
	l = l.Push(2, Entry{ID: "d", Base: `"0x4"`})
	if got := l.Fit(10); got != "d.4,a.1" {
		t.Errorf("fit(10) = %q, want it without the summary", got)
	}
}

// past plays one resource with writers that keep the lineage, writers that keep metadata without adding to it,
// writers that wipe it and writers that put back old metadata.
type past struct {
	rng      *rand.Rand
	size     int
	clients  int
	shared   bool // our client writes other things as well
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
			client := uint64(h.rng.IntN(h.clients))
			if !h.shared {
				client++
			}
			id = NewWriteID(client)
		}
		h.state.Lineage = ParseLineage(h.state.Lineage.Push(h.size, Entry{ID: id, Base: h.state.ETag}).String(), "")
	}
	h.state.ETag = h.etag()
}

// TestJudgeNeverErrsOnRandomHistories takes one write out of histories and asks what became of it. Whatever is said with
// certainty must be true; and where all writers keep the lineage and our client writes nothing else, nothing may be left
// open, however many others have written since.
func TestJudgeNeverErrsOnRandomHistories(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	said := map[Fate]int{}
	for n := range 10_000 {
		h := past{rng: rng, size: 1 + rng.IntN(6), clients: 1 + rng.IntN(12), shared: n%3 == 1, foreign: n%3 != 0}
		if n%50 == 0 {
			h.clients = 150 // more than are remembered
		}
		h.state = State{Exists: true, ETag: h.etag()}
		for range rng.IntN(30) {
			h.step("")
		}
		base := h.state
		landed := rng.IntN(2) == 0
		ours := NewWriteID(0)
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
		got, _ := Change{Base: base, ID: ours, Traced: true}.judge(h.state)
		said[got]++
		certain := !h.foreign && h.clients <= clientsKept && len(base.Lineage.Writes) > 0
		wrong := got == Committed && !landed || got == Refused && landed ||
			got == Undecided && h.state.ETag != base.ETag || got == Unprovable && certain
		if wrong {
			t.Fatalf("judged %d, landed %t, %+v\nbase %+v\nnow  %+v", got, landed, h, base, h.state)
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
// Where it has read them at that very version it is not, and the package says so.
func TestRestoredMetadataIsNoticed(t *testing.T) {
	missed := 0
	for n := range 2000 {
		h := past{rng: rand.New(rand.NewPCG(uint64(n), 3)), size: 2 + n%8, clients: 6}
		h.state = State{Exists: true, ETag: h.etag()}
		for range 10 {
			h.step("")
		}
		stale := h.old[len(h.old)-1-h.rng.IntN(4)] // of the versions before the base
		exact := n%10 == 0
		base := h.state
		if exact {
			stale = base.Lineage
		}
		ours := NewWriteID(0)
		h.step(ours)
		h.state.Lineage, h.state.ETag = stale, h.etag()
		for range h.rng.IntN(3) {
			h.step("")
		}
		switch got, _ := (Change{Base: base, ID: ours, Traced: true}).judge(h.state); {
		case got == Refused && exact:
			missed++
		case got == Refused:
			t.Fatalf("history %d: a write that was applied is judged refused\nbase %+v\nnow  %+v", n, base, h.state)
		}
	}
	if missed == 0 {
		t.Error("not even metadata of the base itself deceive: the doc comment promises too little")
	}
}

func TestContendersAreCountedByClient(t *testing.T) {
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
				l = l.Push(32, Entry{ID: NewWriteID(uint64(rng.IntN(tt.clients)) * 7919)})
			}
			if got := l.contenders(10); got < tt.low || got > tt.high {
				t.Errorf("%d clients: contenders(10) = %.1f, want %.1f to %.1f", tt.clients, got, tt.low, tt.high)
			}
		}
	})
}

func TestOldEntriesDoNotCountAsContenders(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var l Lineage
		for i := range 16 {
			l = l.Push(32, Entry{ID: NewWriteID(uint64(i))})
		}
		bubble.Sleep(time.Minute)
		l = l.Push(32, Entry{ID: NewWriteID(100)})
		if got := l.contenders(10); got != 0 {
			t.Errorf("one fresh writer among old ones: contenders(10) = %v, want 0", got)
		}
		bubble.Sleep(time.Hour)
		if got := l.contenders(10); got != 0 {
			t.Errorf("an hour later: contenders(10) = %v, want 0", got)
		}
	})
}

// TestAbsenceProvesNothingAboutAnUntracedWrite: pages, say, carry no lineage, so that a history without them says
// nothing.
func TestAbsenceProvesNothingAboutAnUntracedWrite(t *testing.T) {
	base := State{Exists: true, ETag: `"0x1"`}
	now := State{Exists: true, ETag: `"0x2"`, Lineage: LineageOf(Entry{ID: NewWriteID(1)})}
	if f, _ := (Change{Base: base, ID: NewWriteID(2)}).judge(now); f != Unprovable {
		t.Errorf("without a trace: %d, want unprovable", f)
	}
	if f, _ := (Change{Base: base, ID: NewWriteID(2), Traced: true}).judge(now); f != Refused {
		t.Errorf("with one: %d, want refused: the history is whole", f)
	}
}

// TestARepeatedEntryDoesNotContinueALineage: earlier versions of azconc put operations in the place of writes, and an
// operation can come again over another base.
func TestARepeatedEntryDoesNotContinueALineage(t *testing.T) {
	base := Lineage{Writes: []Entry{{ID: "deploy-1", Base: `"0x1"`}}}
	for _, tt := range []struct {
		entry Entry
		want  bool
	}{
		{Entry{ID: "deploy-1", Base: `"0x1"`}, true},
		{Entry{ID: "deploy-1", Base: `"0x7"`}, false},
		{Entry{ID: "deploy-2", Base: `"0x1"`}, false},
	} {
		now := Lineage{Writes: []Entry{{ID: "w-later", Base: `"0x8"`}, tt.entry}}
		if got := now.continues(base); got != tt.want {
			t.Errorf("a lineage with %+v continues one with %+v: %v, want %v", tt.entry, base.Writes[0], got, tt.want)
		}
	}
}

// TestTheWriteThatReplacedABaseProvesARefusal, although the lineage does not reach back to the base's own writes.
func TestTheWriteThatReplacedABaseProvesARefusal(t *testing.T) {
	w := Change{Base: State{Exists: true, ETag: `"0x1"`}, ID: "w-mine", Traced: true}
	now := State{Exists: true, ETag: `"0x3"`, Lineage: Lineage{Writes: []Entry{{ID: "w-b", Base: `"0x2"`}, {ID: "w-a", Base: `"0x1"`}}}}
	if f, why := w.judge(now); f != Refused {
		t.Errorf("judge = %v (%s), want refused", f, why)
	}
	now.Lineage.Writes = now.Lineage.Writes[:1]
	if f, why := w.judge(now); f != Unprovable {
		t.Errorf("judge without the write over the base = %v (%s), want unprovable", f, why)
	}
}
