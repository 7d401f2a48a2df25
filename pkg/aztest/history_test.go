package history

import (
	"errors"
	"strings"
	"testing"
	"time"
)

func TestLinearizable(t *testing.T) {
	for _, test := range []struct {
		name  string
		calls []Call
		legal bool
	}{
		{"nothing happened", nil, true},
		{"two additions, both read", []Call{{1, Add, 1, false, 1, 2}, {2, Add, 1, false, 1, 4}, {1, Read, 2, false, 5, 6}}, true},
		{"a lost addition", []Call{{1, Add, 1, false, 1, 2}, {2, Add, 1, false, 1, 4}, {1, Read, 1, false, 5, 6}}, false},
		{"an addition applied twice", []Call{{1, Add, 1, false, 1, 2}, {1, Read, 2, false, 5, 6}}, false},
		{"a refused addition that was applied", []Call{{1, Add, 1, true, 1, 2}, {1, Read, 1, false, 5, 6}}, false},
		{"an unknown outcome, applied", []Call{{1, Add, 1, false, 1, Open}, {1, Read, 1, false, 5, 6}}, true},
		{"an unknown outcome, not applied", []Call{{1, Add, 1, false, 1, Open}, {1, Read, 0, false, 5, 6}}, true},
		{"an unknown outcome that comes and goes", []Call{{1, Add, 1, false, 1, Open}, {1, Read, 1, false, 5, 6}, {1, Read, 0, false, 7, 8}}, false},
		{"the later of two values", []Call{{1, Set, 7, false, 1, 2}, {2, Set, 8, false, 3, 4}, {1, Read, 8, false, 5, 6}}, true},
		{"a value that was replaced", []Call{{1, Set, 7, false, 1, 2}, {2, Set, 8, false, 3, 4}, {1, Read, 7, false, 5, 6}}, false},
	} {
		err := Linearizable(test.calls, time.Minute)
		if (err == nil) != test.legal {
			t.Errorf("%s: %v, want legal %v", test.name, err, test.legal)
		}
		if err != nil && !strings.Contains(err.Error(), "client") {
			t.Errorf("%s: %v does not list the calls", test.name, err)
		}
	}
}

func TestAHistoryThatTakesTooLongIsUndecided(t *testing.T) {
	var calls []Call
	for i := range 60 {
		calls = append(calls, Call{i, Set, i, false, 1, Open})
	}
	calls = append(calls, Call{99, Read, 1, false, 2, 3}, Call{99, Read, 2, false, 4, 5}, Call{99, Read, 1, false, 6, 7})
	if err := Linearizable(calls, time.Millisecond); !errors.Is(err, ErrUndecided) {
		t.Errorf("%v, want ErrUndecided", err)
	}
}

func hold(fence int64, from, to int, shared bool) Hold {
	at := func(s int) time.Time { return time.Unix(int64(s), 0) }
	return Hold{Who: "p", Fence: fence, Asked: at(from), From: at(from), To: at(to), Shared: shared}
}

func TestExclusive(t *testing.T) {
	for _, test := range []struct {
		name  string
		holds []Hold
		legal bool
	}{
		{"one after the other", []Hold{hold(2, 5, 9, false), hold(1, 1, 5, false)}, true},
		{"two at a time", []Hold{hold(2, 4, 9, false), hold(1, 1, 5, false)}, false},
		{"one within another", []Hold{hold(1, 1, 9, false), hold(2, 4, 5, false)}, false},
		{"one that never knew", []Hold{hold(1, 1, 9, false), hold(2, 4, 4, false)}, true},
		{"readers", []Hold{hold(1, 1, 9, true), hold(2, 4, 5, true)}, true},
		{"a reader and a writer", []Hold{hold(1, 1, 9, true), hold(2, 4, 5, false)}, false},
		{"a writer and a reader", []Hold{hold(1, 1, 9, false), hold(2, 4, 5, true)}, false},
	} {
		if err := Exclusive(test.holds); (err == nil) != test.legal {
			t.Errorf("%s: %v, want legal %v", test.name, err, test.legal)
		}
	}
}

func TestAtMost(t *testing.T) {
	holds := []Hold{hold(1, 1, 5, false), hold(2, 2, 9, false), hold(3, 5, 8, false)}
	if err := AtMost(2, holds); err != nil {
		t.Error(err)
	}
	if err := AtMost(2, append(holds, hold(4, 6, 7, false))); err == nil {
		t.Error("three at a time were not noticed")
	}
}

func TestGrowing(t *testing.T) {
	late := hold(1, 6, 9, false) // got the lock late: its client had asked before the other began
	late.Asked = time.Unix(1, 0)
	for _, test := range []struct {
		name  string
		holds []Hold
		legal bool
	}{
		{"growing", []Hold{hold(2, 5, 9, false), hold(1, 1, 4, false)}, true},
		{"falling", []Hold{hold(1, 5, 9, false), hold(2, 1, 4, false)}, false},
		{"the same", []Hold{hold(1, 5, 9, false), hold(1, 5, 9, false)}, false},
		{"an answer that was late", []Hold{hold(2, 5, 9, false), late}, true},
	} {
		if err := Growing(test.holds); (err == nil) != test.legal {
			t.Errorf("%s: %v, want legal %v", test.name, err, test.legal)
		}
	}
}
