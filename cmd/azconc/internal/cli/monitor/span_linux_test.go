package monitor

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/azconc/azconc/pkg/observe"
)

// TestAPipeIsRefused: opening one for writing waits for a reader, no signal ends that, and a reader that stalls holds up the command.
func TestAPipeIsRefused(t *testing.T) {
	name := filepath.Join(t.TempDir(), "spans")
	if err := syscall.Mkfifo(name, 0o600); err != nil {
		t.Fatal(err)
	}
	if _, _, err := Open(context.Background(), Options{Command: "version", TraceFile: name, Getenv: os.Getenv}); err == nil || !strings.Contains(err.Error(), "is a pipe") {
		t.Errorf("err = %v", err)
	}
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
