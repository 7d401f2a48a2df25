// Package bubble lets time pass in tests, where it costs nothing: in a bubble of testing/synctest.
package bubble

import "time"

// Sleep is time.Sleep for tests that run in a bubble. Anywhere else it panics: there a test waits for the thing itself.
func Sleep(d time.Duration) {
	if !time.Now().Before(long) {
		panic("bubble.Sleep outside of a synctest bubble: wait for the thing itself")
	}
	time.Sleep(d)
}

// long is long after the beginning of time in a bubble, 2000-01-01 (testing/synctest), and before any machine's clock.
var long = time.Date(2024, 1, 1, 0, 0, 0, 0, time.UTC)
