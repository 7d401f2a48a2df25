package protocol

import (
	"runtime/debug"
	"testing"

	"go.uber.org/goleak"
)

func TestMain(m *testing.M) {
	debug.SetGCPercent(400) // requests in simulated time leave much to collect, and little is in use
	goleak.VerifyTestMain(m)
}
