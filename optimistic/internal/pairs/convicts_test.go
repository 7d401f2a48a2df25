package pairs

import (
	"strings"
	"testing"
	"time"

	"github.com/azconc/azconc/optimistic"
	"github.com/azconc/azconc/pkg/azerr"
	"github.com/azconc/azconc/pkg/fence"
)

// story is a history in the making, of a resource that holds "0".
type story struct {
	k trial
}

// is notes what is stored, by the request of a call.
func (s *story) is(text string, by *told) *story {
	s.k.w.history = append(s.k.w.history, entry{values: map[string]string{"row": text}, by: by})
	return s
}

// ends notes the end of a call.
func (s *story) ends(d *told, changed bool, err error) *story {
	d.res.Changed, d.res.AlreadyApplied, d.err = changed && err == nil, !changed && err == nil, err
	s.k.w.history = append(s.k.w.history, entry{told: d})
	return s
}

func (s *story) forgets() *story {
	s.k.w.forget(true)
	return s
}

// calls returns a call that begins now.
func (s *story) calls(w *way, c call) *told {
	return &told{call: c, way: w, began: len(s.k.w.history)}
}

// TestTheModelConvicts: each of its rules finds a history that breaks it, and none finds fault with a right one.
func TestTheModelConvicts(t *testing.T) {
	reading := &way{name: "update", place: entityPlace, facet: "row"}
	blind := &way{name: "put", place: entityPlace, facet: "row", blind: true}
	conflict, unknown := error(&azerr.ConflictError{}), error(&azerr.UnknownError{})
	id, early, late := call{mark: "a", id: "op"}, call{mark: "e", holder: holder(10, nil)}, call{mark: "l", holder: holder(20, nil)}
	for name, tt := range map[string]struct {
		tell func(s *story)
		want string // "" if all is right
	}{
		"applied once": {func(s *story) {
			a := s.calls(reading, call{mark: "a"})
			s.is("0a", a).ends(a, true, nil)
		}, ""},
		"applied twice": {func(s *story) {
			a := s.calls(reading, call{mark: "a"})
			s.is("0a", a).is("0aa", a).ends(a, true, nil)
		}, "applied 2 times; 1 calls"},
		"a success that was none": {func(s *story) {
			s.ends(s.calls(reading, call{mark: "a"}), true, nil)
		}, "applied 0 times; 1 calls"},
		"a conflict that was applied": {func(s *story) {
			a := s.calls(reading, call{mark: "a", create: true})
			s.is("0a", a).ends(a, false, conflict)
		}, "applied 1 times; 0 calls"},
		"a conflict without another writer": {func(s *story) {
			s.ends(s.calls(reading, call{mark: "a"}), false, conflict)
		}, "there is no conflict"},
		"unknown on a quiet day": {func(s *story) {
			s.ends(s.calls(reading, call{mark: "a"}), false, unknown)
		}, "it is known"},
		"a lost update": {func(s *story) {
			a, b := s.calls(reading, call{mark: "a"}), s.calls(reading, call{mark: "b"})
			s.is("0b", b).ends(b, true, nil).is("0a", a).ends(a, true, nil)
		}, "lost an update"},
		"a blind write loses none": {func(s *story) {
			a := s.calls(blind, call{mark: "a"})
			s.is("a", a).ends(a, true, nil)
		}, ""},
		"a dry run": {func(s *story) {
			a := s.calls(reading, call{mark: "a", dry: true})
			s.is("0a", a).ends(a, true, nil)
		}, "a dry run has written"},
		"a rerun": {func(s *story) {
			a := s.calls(reading, id)
			s.is("0a", a).ends(a, true, nil).ends(s.calls(reading, id), false, nil)
		}, ""},
		"a rerun that is carried out": {func(s *story) {
			a := s.calls(reading, id)
			s.is("0a", a).ends(a, true, nil)
			b := s.calls(reading, id)
			s.is("0aa", b).ends(b, true, nil)
		}, "carried out again"},
		"a blind rerun over another write": {func(s *story) {
			a := s.calls(blind, id)
			s.is("a", a).ends(a, true, nil)
			b := s.calls(blind, id)
			s.is("f", nil).is("a", b).ends(b, true, nil)
		}, "carried out again"},
		"a rerun after the resource has forgotten": {func(s *story) {
			a := s.calls(reading, id)
			s.is("0a", a).ends(a, true, nil).forgets()
			b := s.calls(reading, id)
			s.is("0aa", b).ends(b, true, nil)
		}, ""},
		"a rerun that is denied": {func(s *story) {
			a := s.calls(reading, id)
			s.is("0a", a).ends(a, true, nil).ends(s.calls(reading, call{mark: "a", id: "op", create: true}), false, conflict)
		}, "the operation was carried out"},
		"already applied by nobody": {func(s *story) {
			s.ends(s.calls(reading, id), false, nil)
		}, "was told that it had been applied"},
		"an earlier holder": {func(s *story) {
			l := s.calls(reading, late)
			s.is("0l", l).ends(l, true, nil)
			e := s.calls(reading, early)
			s.is("0le", e).ends(e, true, nil)
		}, "wrote after that of 20"},
		"an earlier holder is refused": {func(s *story) {
			l := s.calls(reading, late)
			s.is("0l", l).ends(l, true, nil).ends(s.calls(reading, early), false, fence.ErrFenced)
		}, ""},
		"a later holder is refused": {func(s *story) {
			e := s.calls(reading, early)
			s.is("0e", e).ends(e, true, nil).ends(s.calls(reading, late), false, fence.ErrFenced)
		}, "nobody came later"},
		"a request after its end": {func(s *story) {
			a := s.calls(reading, call{mark: "a"})
			s.is("0a", a).ends(a, true, nil).is("0ab", nil).is("0aba", a)
		}, "after its end"},
		"too slow": {func(s *story) {
			a := s.calls(reading, call{mark: "a"})
			a.res.Elapsed = 15 * time.Second
			s.is("0a", a).ends(a, true, nil)
		}, "took 15s"},
		"an error without a reason": {func(s *story) {
			s.ends(s.calls(reading, call{mark: "a"}), false, optimistic.ErrSkip)
		}, "it failed"},
	} {
		t.Run(name, func(t *testing.T) {
			s := &story{trial{combination: combination{reading, &settingsOf[0], &faults[0], &events[0]}, w: &world{place: entityPlace}}}
			tt.tell(s)
			wrong := strings.Join(s.k.judge(map[string]string{"row": "0"}), "\n")
			if (wrong == "") != (tt.want == "") || !strings.Contains(wrong, tt.want) {
				t.Errorf("%q, want %q", wrong, tt.want)
			}
		})
	}
}
