package main

import (
	"fmt"
	"os"
	"testing"

	"github.com/rogpeppe/go-internal/testscript"
	"go.uber.org/goleak"
)

func TestMain(m *testing.M) {
	// Every azconc is a process of its own; with -race it would sleep a second before it ends.
	os.Setenv("GORACE", "atexit_sleep_ms=0")
	testscript.Main(leakChecked{m}, map[string]func(){"azconc": main, "tfclient": tfClient})
}

// leakChecked is goleak.VerifyTestMain for a testing.M that testscript runs.
type leakChecked struct{ m *testing.M }

func (l leakChecked) Run() int {
	code := l.m.Run()
	if code == 0 {
		if err := goleak.Find(); err != nil {
			fmt.Fprintln(os.Stderr, "goleak:", err)
			return 1
		}
	}
	return code
}
