// Package pairs has one test, which is generated: every way to write × what the call is given × what happens meanwhile or after it ×
// what the network does. A model of a few rules judges all of them. Each piece has tests of its own in its package; here is where two
// pieces meet.
package pairs

import (
	"runtime/debug"
	"testing"

	"go.uber.org/goleak"
)

func TestMain(m *testing.M) {
	debug.SetGCPercent(400) // requests in simulated time leave much to collect, and little is in use
	goleak.VerifyTestMain(m)
}
