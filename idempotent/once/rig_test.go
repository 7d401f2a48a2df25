package once

import (
	"runtime/debug"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/goleak"

	"github.com/azconc/azconc/pkg/aztest"
	"github.com/azconc/azconc/pkg/aztest/bubble"
)

func TestMain(m *testing.M) {
	debug.SetGCPercent(400) // requests in simulated time leave much to collect, and little is in use
	goleak.VerifyTestMain(m)
}

// rig is the service in memory.
type rig struct {
	t       *testing.T
	service *aztest.Service
}

func inBubble(t *testing.T, test func(t *testing.T, r *rig)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) { test(t, &rig{t, aztest.New(nil)}) })
}

// ops counts the requests that were sent, by operation.
func (r *rig) ops() map[string]int {
	n := map[string]int{}
	for _, q := range r.service.Log() {
		n[q.Op]++
	}
	return n
}

// pass lets the bubble's time pass.
func pass(d time.Duration) { bubble.Sleep(d) }
