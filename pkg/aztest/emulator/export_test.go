package emulator

import "time"

// SetStall sets how long a body may bring nothing, for one test.
func SetStall(d time.Duration) (undo func()) {
	before := stall
	stall = d
	return func() { stall = before }
}
