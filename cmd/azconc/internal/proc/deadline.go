package proc

// Deadline is a time at which everything of a command must have ended, on a clock that goes on while the machine is
// suspended. The zero value is no deadline.
type Deadline int64
