package protocol

// Deref returns what p points to, or the zero value.
func Deref[T any](p *T) T {
	var zero T
	if p == nil {
		return zero
	}
	return *p
}

// Optional returns nil for the zero value, which the SDK takes for an option that is not set.
func Optional[T comparable](v T) *T {
	var zero T
	if v == zero {
		return nil
	}
	return &v
}
