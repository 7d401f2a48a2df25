package main

import (
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// TestAShiftOfTheClockIsWholeSecondsAndAPositiveRest checks what the kernel demands, without setting the machine's clock.
func TestAShiftOfTheClockIsWholeSecondsAndAPositiveRest(t *testing.T) {
	for _, by := range []time.Duration{0, time.Second, 1500 * time.Millisecond, -time.Second, -1500 * time.Millisecond, -time.Nanosecond} {
		got := offset(by)
		if got.Modes != unix.ADJ_SETOFFSET|unix.ADJ_NANO || got.Time.Usec < 0 || got.Time.Usec >= int64(time.Second) ||
			time.Duration(got.Time.Sec)*time.Second+time.Duration(got.Time.Usec) != by {
			t.Errorf("%v: modes %#x, %d s and %d ns", by, got.Modes, got.Time.Sec, got.Time.Usec)
		}
	}
}
