package pessimistic

import (
	"runtime/debug"
	"testing"

	"go.uber.org/goleak"

	"github.com/azconc/azconc/pkg/azurite/azuritetest"
)

func TestMain(m *testing.M) {
	debug.SetGCPercent(400) // requests in simulated time leave much to collect, and little is in use
	goleak.VerifyTestMain(azuritetest.StopAfter(m))
}
