package pessimistic

import "time"

// LieAbout makes the wall clock of the machine show another time, as remote.clockJump describes.
func (o *LockerOptions) LieAbout(jump func() time.Duration) { o.clockJump = jump }
