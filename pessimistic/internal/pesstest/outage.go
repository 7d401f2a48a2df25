package pesstest

import (
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/azconc/azconc/pkg/aztest"
)

// Slack is the time that a waiter may need after an outage, or after the lease has become free: a wait between two looks, and the
// look itself and an acquisition, each of which may be hanging and be repeated.
const Slack = 5*time.Second + 5*time.Second + 2500*time.Millisecond

// InOutages runs a test with each kind and length of an outage, of which the longest is twice the shortest lease.
func InOutages(t *testing.T, test func(t *testing.T, w *World, fault aztest.Fault, outage time.Duration)) {
	for _, kind := range []aztest.FaultKind{aztest.Refuse, aztest.Throttle, aztest.Hang, aztest.LoseRequest, aztest.LoseAnswer} {
		for _, outage := range []time.Duration{time.Second, 10 * time.Second, 30 * time.Second} {
			t.Run(fmt.Sprintf("%s for %v", kind, outage), func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) { test(t, New(t, WithLatency(0)), aztest.Fault{Kind: kind}, outage) })
			})
		}
	}
}
