package monitor

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/azconc/azconc/pkg/observe"
)

func pipe(t *testing.T) string {
	t.Helper()
	name := filepath.Join(t.TempDir(), "spans")
	if err := syscall.Mkfifo(name, 0o600); err != nil {
		t.Fatal(err)
	}
	return name
}

// ends fails the test if f does not return: a command would hang with it.
func ends(t *testing.T, what string, f func()) {
	t.Helper()
	over := make(chan struct{})
	go func() { defer close(over); f() }()
	select {
	case <-over:
	case <-time.After(20 * time.Second):
		t.Fatal(what + " hangs")
	}
}

// TestAPipeThatNobodyReadsIsRefused: opening it for writing waits for a reader, and no signal ends that.
func TestAPipeThatNobodyReadsIsRefused(t *testing.T) {
	name := pipe(t)
	ends(t, "Open", func() {
		_, _, err := Open(context.Background(), Options{Command: "version", TraceFile: name, Getenv: os.Getenv})
		if err == nil || !strings.Contains(err.Error(), "nobody reads") {
			t.Errorf("err = %v", err)
		}
	})
}

// TestAReaderThatStallsHoldsNothingUp: spans are dropped after one that could not be written, and Close says so once.
func TestAReaderThatStallsHoldsNothingUp(t *testing.T) {
	name := pipe(t)
	reader, err := os.OpenFile(name, os.O_RDONLY|syscall.O_NONBLOCK, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer reader.Close()
	ends(t, "the command", func() {
		ctx, m, err := Open(context.Background(), Options{Command: "version", TraceFile: name, Getenv: os.Getenv})
		if err != nil {
			t.Error(err)
			return
		}
		m.file.patience = 10 * time.Millisecond
		for range 300 { // a pipe takes 64 KiB, and a span has 600 bytes
			_, end := m.Hooks().Start(ctx, observe.Span{Name: "update", Resource: "box/" + strings.Repeat("n", 200)})
			end(nil)
		}
		if err := m.Close(nil); err == nil || strings.Count(err.Error(), "spans are missing") != 1 {
			t.Errorf("Close: %v", err)
		}
	})
}

// TestAFullDiskIsReportedOnce: and not for each span, which a consumer has without end.
func TestAFullDiskIsReportedOnce(t *testing.T) {
	ctx, m, err := Open(context.Background(), Options{Command: "version", TraceFile: "/dev/full", Getenv: os.Getenv})
	if err != nil {
		t.Skip(err)
	}
	for range 3 {
		_, end := m.Hooks().Start(ctx, observe.Span{Name: "update"})
		end(nil)
	}
	if err := m.Close(nil); err == nil || strings.Count(err.Error(), "no space left") != 1 {
		t.Errorf("Close: %v", err)
	}
}
