package optimistic

// Version is a value together with the version it was read at.
type Version[T any] struct {
	State
	Value T

	// Carry is private to the target: what a write has to send so that everything else about the resource survives.
	Carry any
}
