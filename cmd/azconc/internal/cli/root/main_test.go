package root

import (
	"os"
	"runtime/debug"
	"testing"

	"go.uber.org/goleak"

	"github.com/azconc/azconc/cmd/azconc/internal/proc"
)

func TestMain(m *testing.M) {
	if proc.Watchdog(os.Args) {
		return
	}
	debug.SetGCPercent(800) // thousands of command lines make little that lasts, and much that does not
	goleak.VerifyTestMain(m)
}
