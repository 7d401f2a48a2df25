//go:build unix && !linux && !darwin

package proc

// stopped says that no child is ever found to be stopped: one that is suspended from the terminal waits to be continued.
func stopped(int) bool { return false }
