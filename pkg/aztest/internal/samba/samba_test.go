package samba

import (
	"fmt"
	"net"
	"strings"
	"testing"
)

// refusedTB is a test that continues after Fatal and Skip.
type refusedTB struct {
	testing.TB
	said string
}

func (r *refusedTB) Helper() {}
func (r *refusedTB) Skipf(format string, args ...any) {
	r.said = "skip: " + fmt.Sprintf(format, args...)
}
func (r *refusedTB) Fatalf(format string, args ...any) {
	r.said = "fail: " + fmt.Sprintf(format, args...)
}

func TestWithoutSambaATestIsSkippedAndFailsWhereSambaIsRequired(t *testing.T) {
	for value, want := range map[string]string{
		"":    "skip: SKIP: smbd is not installed",
		"0":   "skip: SKIP: smbd is not installed",
		"1":   "fail: smbd is not installed",
		"yes": "fail: " + RequireVariable + ` is "yes"`,
	} {
		t.Setenv(RequireVariable, value)
		r := &refusedTB{TB: t}
		refuse(r, "smbd is not installed")
		if !strings.HasPrefix(r.said, want) {
			t.Errorf("with %q: %q, want %q", value, r.said, want)
		}
	}
}

func TestTwoServersRunAtTheSameTime(t *testing.T) {
	first, second := Start(t), Start(t)
	if first.Address == second.Address || first.Dir == second.Dir {
		t.Fatalf("both are at %s in %s", first.Address, first.Dir)
	}
	place(t, first, "f")
	if list, err := dial(t, second).List(""); err != nil || len(list) != 0 {
		t.Errorf("the second lists %v, %v", list, err)
	}
}

func TestAServerWhosePortIsTakenSaysSo(t *testing.T) {
	if why := missing(); why != "" {
		refuse(t, why)
	}
	taken, err := net.Listen("tcp4", "127.0.0.1:0") // it accepts connections and sends nothing
	if err != nil {
		t.Fatal(err)
	}
	defer taken.Close()
	s, err := prepare(t.Context(), t, taken.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	if err := s.serve(t.Context(), t); err == nil || !strings.Contains(err.Error(), "it ended") {
		t.Errorf("err = %v", err)
	}
}
