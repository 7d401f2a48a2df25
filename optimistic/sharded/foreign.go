package sharded

import "fmt"

// A counter and a document differ in one member: the number n or a value. A write loses members that the type does not name,
// so each names that of the other, and refuses to read it.

// noValue is the member that no shard of a counter has.
type noValue struct{}

// UnmarshalJSON implements json.Unmarshaler. Any value but null is an error.
func (noValue) UnmarshalJSON(data []byte) error {
	return unlessNull(data, ErrNoCounter, "a value, as a shard of a document")
}

// noNumber is the member that no shard of a document has.
type noNumber struct{}

// UnmarshalJSON implements json.Unmarshaler. Any value but null is an error.
func (noNumber) UnmarshalJSON(data []byte) error {
	return unlessNull(data, ErrNoDocument, "a number, as a shard of a counter")
}

func unlessNull(data []byte, foreign error, has string) error {
	if string(data) == "null" {
		return nil
	}
	return fmt.Errorf("%w: it has %s; give another name", foreign, has)
}
