// Package bubble lets time pass in a test that runs in a bubble of testing/synctest, where it costs nothing.
//
// It is public because tests of every package of this module use it, and an internal package could not reach all of
// them. It is of use to any test that talks to package aztest in a bubble: a Sleep that has left its bubble, and would hold up
// the test run, panics.
package bubble

import "time"

// Sleep is time.Sleep in a bubble. Anywhere else it panics: a test outside a bubble waits for the event itself.
func Sleep(d time.Duration) {
	if !time.Now().Before(long) {
		panic("bubble.Sleep outside a synctest bubble: wait for the event itself")
	}
	time.Sleep(d)
}

// long is long after the beginning of time in a bubble, 2000-01-01 (testing/synctest), and before any machine's clock.
var long = time.Date(2024, 1, 1, 0, 0, 0, 0, time.UTC)
