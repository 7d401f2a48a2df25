package main

import (
	"fmt"
	"os"
	"os/signal"
	"syscall"
	"testing"

	"github.com/rogpeppe/go-internal/testscript"
	"go.uber.org/goleak"

	"github.com/azconc/azconc/pkg/azurite/azuritetest"
)

func TestMain(m *testing.M) {
	// Every azconc is a process of its own; with -race it would sleep a second before it ends.
	os.Setenv("GORACE", "atexit_sleep_ms=0")
	testscript.Main(leakChecked{azuritetest.StopAfter(m)}, map[string]func(){"azconc": main, "tfclient": tfClient})
}

// leakChecked is goleak.VerifyTestMain for a testing.M that testscript runs.
type leakChecked struct{ m *azuritetest.M }

func (l leakChecked) Run() int {
	heedSignals()
	code := l.m.Run()
	if code == 0 {
		if err := goleak.Find(); err != nil {
			fmt.Fprintln(os.Stderr, "goleak:", err)
			return 1
		}
	}
	return code
}

// heedSignals has what is started from here get the signals that the tests were started to ignore, as under nohup or in the
// background of a script: a handler is not inherited, to ignore is.
func heedSignals() {
	for _, s := range []os.Signal{syscall.SIGHUP, syscall.SIGINT} {
		if signal.Ignored(s) {
			signal.Notify(make(chan os.Signal, 1), s)
		}
	}
}
