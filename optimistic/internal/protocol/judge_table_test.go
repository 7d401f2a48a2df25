package protocol

import (
	"strings"
	"testing"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore"
)

// TestEveryRowOfJudge has a case on each side of every row of Change.judge, in the order of the rows. Of two rows that would
// apply, the case names the one that comes first.
func TestEveryRowOfJudge(t *testing.T) {
	const (
		base, later azcore.ETag = `"0x1"`, `"0x2"`
		mine                    = "w-mine"
	)
	at := func(seconds int) time.Time { return time.Unix(1_700_000_000+int64(seconds), 0) }
	old := Entry{ID: "w-old", Base: Over(`"0x0"`)}
	write := func(id string, over azcore.ETag) Entry { return Entry{ID: id, Base: Over(over)} }
	is := func(etag azcore.ETag, entries ...Entry) State { // a version, and its recent writes
		return State{Exists: true, ETag: etag, LastModified: at(0), Lineage: LineageOf(entries...)}
	}
	unwritten := is(base) // by azconc
	cut := func(s State) State {
		s.Lineage.count++ // an earlier write has dropped out
		s.Lineage.first = Entry{ID: "w-first", Base: ""}
		return s
	}
	modified := func(s State, seconds int) State { s.LastModified = at(seconds); return s }
	created := func(s State, seconds int) State { s.Created = at(seconds); return s }
	deploy := NewIntent("blob", "deploy-1")
	performed := is(later, write("w-other", base))
	performed.Lineage = performed.Lineage.Perform(deploy, at(0))

	for _, tt := range []struct {
		name string
		w    Change
		now  State
		fate Fate
		why  string // begins so; empty: there is none
	}{
		{"a state that decides", Change{Base: unwritten, ID: mine, Traced: true}, State{Exists: true, ETag: later}.Decide(Refused, "one of two"), Refused, "one of two"},
		{"a state that decides against the lineage", Change{Base: unwritten, ID: mine, Traced: true}, func() State {
			s := is(later, write(mine, base))
			s.decided = &decision{Unprovable, "one of two"}
			return s
		}(), Unprovable, "one of two"},

		{"its entry", Change{Base: is(base, old), ID: mine, Traced: true}, is(later, write(mine, base), old), Committed, ""},
		{"its entry, over the base's own ETag", Change{Base: is(base, old), ID: mine, Traced: true}, is(base, write(mine, base), old), Committed, ""},
		{"its entry, without a trace", Change{Base: is(base, old), ID: mine}, is(later, write(mine, base), old), Committed, ""},
		{"its entry as the first of the lineage, which has dropped out", Change{Base: State{}, ID: mine, Traced: true}, func() State {
			s := cut(is(later, write("w-b", base)))
			s.Lineage.first.ID = mine
			return s
		}(), Committed, ""},
		{"its mark", Change{Base: is(base, old), ID: mine, Traced: true}, func() State {
			l := LineageOf(old).Push(1, Entry{ID: mine, Base: Over(base), Passed: 3}).Push(1, Entry{ID: "w-b", Base: Over(later), Passed: 3})
			return State{Exists: true, ETag: `"0x3"`, Lineage: l}
		}(), Committed, ""},
		{"no id: another write without one", Change{Base: unwritten, Remove: true}, is(base, Entry{Base: Over(base)}), Undecided, "it is still"},

		{"its operation, by another write", Change{Base: unwritten, ID: mine, Traced: true, Op: deploy}, performed, Performed, ""},
		{"another operation", Change{Base: unwritten, ID: mine, Traced: true, Op: NewIntent("blob", "deploy-2")}, performed, Refused, ""},

		{"an unconditional deletion, and it is gone", Change{AnyBase: true, Remove: true}, State{}, Committed, ""},
		{"an unconditional deletion, and it is there", Change{AnyBase: true, Remove: true}, unwritten, Undecided, "nothing shows"},
		{"an unconditional write, and it is gone", Change{AnyBase: true, ID: mine}, State{}, Undecided, "nothing shows"},

		{"the base is there", Change{Base: unwritten, ID: mine, Traced: true}, unwritten, Undecided, "it is still as it was"},
		{"the base is there, and older than the request", Change{Base: unwritten, ID: mine, Traced: true, sent: at(60)}, unwritten, Undecided, "it is still as it was"},
		{"a create, and nothing is there", Change{ID: mine, Traced: true}, State{}, Undecided, WhyAbsent},
		{"a deletion of what was not there", Change{Remove: true}, State{}, Unprovable, "it is gone, and nothing shows by whose deletion"},

		{"a deletion, and it is gone", Change{Base: unwritten, Remove: true}, State{}, Unprovable, "it is gone, and nothing shows by whose deletion"},
		{"a write, and it is gone", Change{Base: unwritten, ID: mine, Traced: true}, State{}, Unprovable, "it was deleted"},

		{"another write over the base", Change{Base: unwritten, ID: mine}, is(later, write("w-other", base)), Refused, ""},
		{"another create", Change{ID: mine}, is(later, write("w-other", "")), Refused, ""},
		{"a write over another version, without a trace", Change{Base: unwritten, ID: mine}, is(later, write("w-other", `"0x9"`)), Unprovable, "it changed, and the write carried no lineage"},

		{"a version from before the request", Change{Base: unwritten, ID: mine, sent: at(20)}, modified(is(later), 10), Refused, ""},
		{"a version from within the margin of the request", Change{Base: unwritten, ID: mine, sent: at(16)}, modified(is(later), 10), Unprovable, "it changed"},
		{"a version that is not newer than the base, from a cache", Change{Base: modified(unwritten, 10), ID: mine, sent: at(60)}, modified(is(later), 10), Unprovable, "it changed"},
		{"a version without a date", Change{Base: State{Exists: true, ETag: base}, ID: mine, sent: at(60)}, State{Exists: true, ETag: later}, Unprovable, "it changed"},
		{"a request without a date", Change{Base: unwritten, ID: mine}, modified(is(later), 10), Unprovable, "it changed"},
		{"a create of what is older than the request, and was changed since", Change{ID: mine, sent: at(20)}, created(modified(is(later), 30), 10), Refused, ""},
		{"a create of what is younger than the request", Change{ID: mine, sent: at(20)}, created(modified(is(later), 30), 25), Unprovable, "it changed"},

		{"a deletion, and the lineage continues", Change{Base: is(base, old), Remove: true}, is(later, write("w-other", later), old), Refused, ""},
		{"a deletion, and a new lineage", Change{Base: is(base, old), Remove: true}, is(later, write("w-other", later)), Unprovable, "it was replaced"},

		{"no trace", Change{Base: is(base, old), ID: mine}, is(later, write("w-other", later), old), Unprovable, "it changed, and the write carried no lineage"},
		{"the lineage continues without it", Change{Base: is(base, old), ID: mine, Traced: true}, is(later, write("w-other", later), old), Refused, ""},
		{"the lineage continues over a foreign write, and only another write over the base counts", Change{Base: is(base, old), ID: mine, Traced: true, strict: true}, is(`"0x3"`, write("w-other", later), old), Unprovable, "it changed, and its lineage no longer reaches"},

		{"the caller's ETag, and the whole lineage, perhaps of a blob that was created since", Change{Base: State{Exists: true, ETag: base}, ID: mine, Traced: true}, is(later, write("w-other", `"0x9"`), write("w-first", "")), Unprovable, "it changed, and its lineage no longer reaches"},
		{"the caller's ETag, and a part of the lineage", Change{Base: State{Exists: true, ETag: base}, ID: mine, Traced: true}, cut(is(later, write("w-other", `"0x9"`))), Unprovable, "it changed, and its lineage no longer reaches"},
		{"a version that was read, and the whole lineage of another resource", Change{Base: unwritten, ID: mine, Traced: true}, is(later, write("w-other", `"0x9"`), write("w-first", "")), Unprovable, "it changed, and its lineage no longer reaches"},

		{"a foreign writer", Change{Base: unwritten, ID: mine, Traced: true}, is(later), Unprovable, "it was changed by a writer that keeps no lineage"},
		{"a lineage that does not reach back", Change{Base: is(base, old), ID: mine, Traced: true}, cut(is(later, write("w-other", `"0x9"`))), Unprovable, "it changed, and its lineage no longer reaches"},
	} {
		f, why := tt.w.judge(tt.now)
		if f != tt.fate || !strings.HasPrefix(why, tt.why) || tt.why == "" && why != "" {
			t.Errorf("%s: judged %d (%s), want %d (%s)", tt.name, f, why, tt.fate, tt.why)
		}
	}
}
