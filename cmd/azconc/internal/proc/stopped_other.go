//go:build unix && !linux && !darwin

package proc

// stopped always returns false: a child that is suspended from the terminal waits to be continued.
func stopped(int) bool { return false }
