package protocol

import "testing"

// TestAnEntryThatCameAgainContinuesNothing: earlier versions of azconc put operations in the place of writes, and an
// operation can come again over another base.
func TestAnEntryThatCameAgainContinuesNothing(t *testing.T) {
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
