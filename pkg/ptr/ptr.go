// Package ptr converts between values and the pointers that stand for optional ones in the SDK.
//
// The package is no API: it is here because several packages of this module share it, and may change in any release.
package ptr

// Value returns what p points to, or the zero value.
func Value[T any](p *T) (v T) {
	if p != nil {
		v = *p
	}
	return v
}

// Optional returns nil for the zero value: an emulator treats a header without a value as if it had not been sent.
func Optional[T comparable](v T) *T {
	var zero T
	if v == zero {
		return nil
	}
	set := v // v itself would be allocated for zero values too
	return &set
}
