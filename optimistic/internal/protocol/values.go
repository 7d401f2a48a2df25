package protocol

import "time"

func Deref[T any](p *T) T {
	var zero T
	if p == nil {
		return zero
	}
	return *p
}

func Optional[S ~string](s S) *S {
	if s == "" {
		return nil
	}
	return &s
}

func OptionalTime(t time.Time) *time.Time {
	if t.IsZero() {
		return nil
	}
	return &t
}
