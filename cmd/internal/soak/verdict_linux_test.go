package soak

import (
	"os"
	"path/filepath"
	"testing"
)

func calls(outs ...string) (r records) {
	for i, out := range outs {
		n := note{Kind: "tally", Lane: "w0/tally/0", Of: "blob-0", Begin: int64(i + 1), End: int64(i + 1), Out: out, N: int64(i)}
		if out == "" {
			n.End = 0
		}
		r = append(r, n)
	}
	return r
}

func TestALaneAlone(t *testing.T) {
	for _, test := range []struct {
		name     string
		calls    records
		found    int64
		problems int
	}{
		{"three applied", calls(ok, ok, ok), 3, 0},
		{"one lost at the end", calls(ok, ok, ok), 2, 1},
		{"one applied twice at the end", calls(ok, ok, ok), 4, 1},
		{"one lost on the way", records{{Out: ok, N: 0, End: 1}, {Out: ok, N: 0, End: 2}}, 1, 1},
		{"one applied twice on the way", records{{Out: ok, N: 0, End: 1}, {Out: ok, N: 2, End: 2}}, 3, 1},
		{"unknown, applied", calls(ok, unknown), 2, 0},
		{"unknown, not applied", calls(ok, unknown), 1, 0},
		{"killed, applied", calls(ok, ""), 2, 0},
		{"refused, applied", calls(ok, refused), 2, 1},
		{"failed, not applied", calls(ok, failed), 1, 0},
		{"after an unknown one", records{{Out: unknown, N: 0, End: 1}, {Out: ok, N: 0, End: 2}, {Out: ok, N: 1, End: 3}}, 2, 0},
	} {
		v := &verdict{}
		v.count("lane", "blob", test.calls, test.found)
		if len(v.problems) != test.problems {
			t.Errorf("%s: %q, want %d problems", test.name, v.problems, test.problems)
		}
	}
}

func TestAJournalSurvivesItsProcess(t *testing.T) {
	dir := t.TempDir()
	j, err := createJournal(dir, "w1.2")
	if err != nil {
		t.Fatal(err)
	}
	first := j.begin(note{Kind: "a"})
	j.begin(note{Kind: "b"})
	j.fact(note{Kind: "c"})
	j.end(first, ok)
	if err := j.file.Close(); err != nil {
		t.Fatal(err)
	}
	f, err := os.OpenFile(filepath.Join(dir, "w1.2"+journalSuffix), os.O_APPEND|os.O_WRONLY, 0)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := f.WriteString(`{"k":"half a li`); err != nil {
		t.Fatal(err)
	}
	if err := f.Close(); err != nil {
		t.Fatal(err)
	}
	all, err := readJournals(dir)
	if err != nil {
		t.Fatal(err)
	}
	if a, b := all.of("a"), all.of("b"); len(all) != 3 || len(a) != 1 || a[0].Out != ok || len(b) != 1 || b[0].End != 0 || a[0].Process != "w1.2" {
		t.Errorf("%+v", all)
	}
}

func TestTroubleExplains(t *testing.T) {
	s := &soak{troubles: []trouble{{process: "w1.1", from: 10, to: 20}, {from: 30, to: 40}}}
	for _, test := range []struct {
		process  string
		from, to int64
		want     bool
	}{
		{"w1.1", 5, 9, false}, {"w1.1", 5, 11, true}, {"w1.1", 19, 25, true}, {"w1.1", 20, 29, false},
		{"w2.1", 5, 25, false}, {"w2.1", 35, 36, true},
	} {
		if got := s.troubled(test.process, test.from, test.to); got != test.want {
			t.Errorf("%+v: %v", test, got)
		}
	}
}

// Slots have fences of their own: two holds of a lane may have the same fence.
func TestHoldsAreDistinguished(t *testing.T) {
	ask := func(id, from int64) note {
		return note{Kind: "ask", Process: "w1.1", Lane: "w1/turn/0", Of: "seats", Out: ok, V: 7, ID: id, Begin: from, End: from}
	}
	held := func(id, at int64) note {
		return note{Kind: "held", Process: "w1.1", Lane: "w1/turn/0", Of: "seats", V: id, Begin: at}
	}
	s := &soak{records: records{ask(1, 10), held(1, 20), ask(2, 30), held(2, 40)}, troubles: []trouble{{what: restart, from: 35, to: 36}}}
	holds := s.holds()["seats"]
	if len(holds) != 2 || holds[0].To.UnixNano() != 20 || holds[1].To.UnixNano() != 35 {
		t.Errorf("%v, want the first until 20, and the second until the restart at 35", holds)
	}
}

func TestRepeatedEffectsNeedAReason(t *testing.T) {
	const second = 1_000_000_000
	at := func(process string, s int64) note { return note{Kind: "effect", Process: process, Begin: s * second} }
	s := &soak{troubles: []trouble{
		{process: "w1.1", what: kill, from: 101 * second, to: forever},
		{process: "w2.1", what: pause, from: 100 * second, to: 120 * second},
	}}
	for _, test := range []struct {
		name    string
		effects records
		legal   bool
	}{
		{"one", records{at("w3.1", 100)}, true},
		{"two", records{at("w3.1", 100), at("w3.1", 110)}, false},
		{"the first was killed before it could say", records{at("w1.1", 100), at("w3.1", 110)}, true},
		{"the second was killed, which explains nothing", records{at("w3.1", 90), at("w1.1", 100)}, false},
		{"the second had just been continued", records{at("w3.1", 110), at("w2.1", 120)}, true},
		{"the second had been continued long ago", records{at("w3.1", 110), at("w2.1", 130)}, false},
	} {
		if err := s.repeated("m", test.effects); (err == nil) != test.legal {
			t.Errorf("%s: %v", test.name, err)
		}
	}
}
