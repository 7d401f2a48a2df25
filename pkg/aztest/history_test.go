package aztest

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/azconc/azconc/pkg/aztest/history"
)

func call(client int, kind history.Kind, value int, refused bool, from, to int64) history.Call {
	return history.Call{Client: client, Kind: kind, Value: value, Refused: refused, From: from, To: to}
}

func TestLinearizable(t *testing.T) {
	for _, test := range []struct {
		name  string
		calls []history.Call
		legal bool
	}{
		{"nothing happened", nil, true},
		{"two additions, both read", []history.Call{call(1, history.Add, 1, false, 1, 2), call(2, history.Add, 1, false, 1, 4), call(1, history.Read, 2, false, 5, 6)}, true},
		{"a lost addition", []history.Call{call(1, history.Add, 1, false, 1, 2), call(2, history.Add, 1, false, 1, 4), call(1, history.Read, 1, false, 5, 6)}, false},
		{"an addition applied twice", []history.Call{call(1, history.Add, 1, false, 1, 2), call(1, history.Read, 2, false, 5, 6)}, false},
		{"a refused addition that was applied", []history.Call{call(1, history.Add, 1, true, 1, 2), call(1, history.Read, 1, false, 5, 6)}, false},
		{"an unknown outcome, applied", []history.Call{call(1, history.Add, 1, false, 1, history.Open), call(1, history.Read, 1, false, 5, 6)}, true},
		{"an unknown outcome, not applied", []history.Call{call(1, history.Add, 1, false, 1, history.Open), call(1, history.Read, 0, false, 5, 6)}, true},
		{"an unknown outcome that comes and goes", []history.Call{call(1, history.Add, 1, false, 1, history.Open), call(1, history.Read, 1, false, 5, 6), call(1, history.Read, 0, false, 7, 8)}, false},
		{"the later of two values", []history.Call{call(1, history.Set, 7, false, 1, 2), call(2, history.Set, 8, false, 3, 4), call(1, history.Read, 8, false, 5, 6)}, true},
		{"a value that was replaced", []history.Call{call(1, history.Set, 7, false, 1, 2), call(2, history.Set, 8, false, 3, 4), call(1, history.Read, 7, false, 5, 6)}, false},
	} {
		err := history.Linearizable(test.calls, time.Minute)
		if (err == nil) != test.legal {
			t.Errorf("%s: %v, want legal %v", test.name, err, test.legal)
		}
		if err != nil && !strings.Contains(err.Error(), "client") {
			t.Errorf("%s: %v does not list the calls", test.name, err)
		}
	}
}

func TestAHistoryThatTakesTooLongIsUndecided(t *testing.T) {
	var calls []history.Call
	for i := range 60 {
		calls = append(calls, call(i, history.Set, i, false, 1, history.Open))
	}
	calls = append(calls, call(99, history.Read, 1, false, 2, 3), call(99, history.Read, 2, false, 4, 5), call(99, history.Read, 1, false, 6, 7))
	if err := history.Linearizable(calls, time.Millisecond); !errors.Is(err, history.ErrUndecided) {
		t.Errorf("%v, want ErrUndecided", err)
	}
}

func during(fence int64, from, to int, shared bool) history.Hold {
	at := func(s int) time.Time { return time.Unix(int64(s), 0) }
	return history.Hold{Who: "p", Fence: fence, Asked: at(from), From: at(from), To: at(to), Shared: shared}
}

func TestExclusive(t *testing.T) {
	for _, test := range []struct {
		name  string
		holds []history.Hold
		legal bool
	}{
		{"one after the other", []history.Hold{during(2, 5, 9, false), during(1, 1, 5, false)}, true},
		{"two at a time", []history.Hold{during(2, 4, 9, false), during(1, 1, 5, false)}, false},
		{"one within another", []history.Hold{during(1, 1, 9, false), during(2, 4, 5, false)}, false},
		{"one that never knew", []history.Hold{during(1, 1, 9, false), during(2, 4, 4, false)}, true},
		{"readers", []history.Hold{during(1, 1, 9, true), during(2, 4, 5, true)}, true},
		{"a reader and a writer", []history.Hold{during(1, 1, 9, true), during(2, 4, 5, false)}, false},
		{"a writer and a reader", []history.Hold{during(1, 1, 9, false), during(2, 4, 5, true)}, false},
	} {
		if err := history.Exclusive(test.holds); (err == nil) != test.legal {
			t.Errorf("%s: %v, want legal %v", test.name, err, test.legal)
		}
	}
}

func TestAtMost(t *testing.T) {
	holds := []history.Hold{during(1, 1, 5, false), during(2, 2, 9, false), during(3, 5, 8, false)}
	if err := history.AtMost(2, holds); err != nil {
		t.Error(err)
	}
	if err := history.AtMost(2, append(holds, during(4, 6, 7, false))); err == nil {
		t.Error("three at a time were not noticed")
	}
}

func TestGrowing(t *testing.T) {
	late := during(1, 6, 9, false) // got the lock late: its client had asked before the other began
	late.Asked = time.Unix(1, 0)
	for _, test := range []struct {
		name  string
		holds []history.Hold
		legal bool
	}{
		{"growing", []history.Hold{during(2, 5, 9, false), during(1, 1, 4, false)}, true},
		{"falling", []history.Hold{during(1, 5, 9, false), during(2, 1, 4, false)}, false},
		{"the same", []history.Hold{during(1, 5, 9, false), during(1, 5, 9, false)}, false},
		{"an answer that was late", []history.Hold{during(2, 5, 9, false), late}, true},
	} {
		if err := history.Growing(test.holds); (err == nil) != test.legal {
			t.Errorf("%s: %v, want legal %v", test.name, err, test.legal)
		}
	}
}
