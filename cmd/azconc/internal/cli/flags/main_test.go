package flags

import (
	"os"
	"testing"

	"go.uber.org/goleak"

	"github.com/azconc/azconc/cmd/azconc/internal/proc"
)

func TestMain(m *testing.M) {
	if proc.Watchdog(os.Args) {
		return
	}
	goleak.VerifyTestMain(m)
}
