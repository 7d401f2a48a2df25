package optimistic

import (
	"context"
	"fmt"

	"github.com/azconc/azconc/optimistic/internal/protocol"
	"github.com/azconc/azconc/optimistic/internal/sealed"
)

// Target is a value in Azure Storage that can be read together with its version and written back on a condition: the
// content of a blob, its metadata, an entity, and so on. The packages below this one make targets. Map makes a target of a
// caller's own type from one of them.
//
// The interface is sealed: its second method is for package optimistic, and only the packages of azconc implement it. All
// targets are safe for concurrent use.
type Target[T any] interface {
	// Resource names the target by path, never by URL: a URL may carry a SAS.
	Resource() string

	// Protocol returns the target as the operations of package optimistic use it.
	Protocol() sealed.Target[T]
}

// intentOf returns the operation that a call carries out on target.
func intentOf(target any, operationID string) protocol.Intent {
	if operationID == "" {
		return protocol.Intent{}
	}
	return protocol.NewIntent(sealed.TraitsOf(target).Scope, operationID)
}

// open returns the target for an operation. It returns an error that says what is nil.
func open[T any](op string, target Target[T]) (sealed.Target[T], error) {
	if err := sealed.NotNil(op, "target", target); err != nil {
		return nil, err
	}
	t := target.Protocol()
	return t, sealed.NotNil(op, "target", t)
}

// Map returns a target whose value is made of another target's: decode makes a T of the S that is stored, encode an S of
// a T. It is how a program wraps a target, to encrypt or compress content, to check it, or to give it another type.
//
//	secret := optimistic.Map(blobs.NewBytes(client), open, seal)
//
// Neither function sees the lineage or the conditions of a write, so every promise of the inner target holds, and so do its
// cost and its limits. Both must be free of side effects and safe for concurrent use. encode runs for every write; equal
// values should have equal encodings, or an update that changes nothing is written. An error of either ends the
// operation before anything is written. If the resource does not exist, decode does not run, and a change begins with
// T's zero value.
func Map[S, T any](inner Target[S], decode func(S) (T, error), encode func(T) (S, error)) Target[T] {
	return mapped[S, T]{inner, decode, encode}
}

// mapped is the target that Map returns.
type mapped[S, T any] struct {
	Target[S]
	decode func(S) (T, error)
	encode func(T) (S, error)
}

// Protocol implements Target.
func (m mapped[S, T]) Protocol() sealed.Target[T] {
	if sealed.NotNil("", "target", m.Target, "decode", m.decode, "encode", m.encode) != nil {
		return nil
	}
	return mappedTarget[S, T]{Target: m.Target.Protocol(), decode: m.decode, encode: m.encode}
}

// mappedTarget carries with each version the one that the inner target read.
type mappedTarget[S, T any] struct {
	sealed.Target[S]
	decode func(S) (T, error)
	encode func(T) (S, error)
}

// Unwrap returns the inner target, whose traits these are.
func (m mappedTarget[S, T]) Unwrap() any { return m.Target }

// Read implements sealed.Target.
func (m mappedTarget[S, T]) Read(ctx context.Context) (*sealed.Version[T], error) {
	stored, err := m.Target.Read(ctx)
	if err != nil {
		return nil, err
	}
	v := sealed.Carry(&sealed.Version[T]{State: stored.State}, sealed.Carried(stored))
	if stored.Exists {
		if v.Value, err = m.decode(stored.Value); err != nil {
			return nil, fmt.Errorf("decode: %w", err)
		}
	}
	return v, nil
}

// inner returns a version as the inner target reads it. Its targets write over what they carry, not over the value.
func (m mappedTarget[S, T]) inner(v *sealed.Version[T]) *sealed.Version[S] {
	return sealed.Carry(&sealed.Version[S]{State: v.State}, sealed.Carried(v))
}

// Writable refuses what the inner target cannot write over.
func (m mappedTarget[S, T]) Writable(base *sealed.Version[T]) error {
	if t, ok := m.Target.(interface {
		Writable(*sealed.Version[S]) error
	}); ok {
		return t.Writable(m.inner(base))
	}
	return nil
}

// Prepare implements sealed.Target.
func (m mappedTarget[S, T]) Prepare(base *sealed.Version[T], value T, lineage protocol.Lineage, c sealed.Conditions) (protocol.Prepared, error) {
	encoded, err := m.encode(value)
	if err != nil {
		return protocol.Prepared{}, fmt.Errorf("encode: %w", err)
	}
	return m.Target.Prepare(m.inner(base), encoded, lineage, c)
}

// Cached implements protocol.Cached.
func (m mappedTarget[S, T]) Cached() sealed.Cacheable[T] {
	if c := sealed.CacheOf(m.Target); c != nil {
		return mappedCache[S, T]{m, c}
	}
	return nil
}

// mappedCache copies and compares values by their encodings.
type mappedCache[S, T any] struct {
	mappedTarget[S, T]
	cache sealed.Cacheable[S]
}

// Clone implements sealed.Cacheable.
func (m mappedCache[S, T]) Clone(value T) (T, error) {
	var none T
	encoded, err := m.encode(value)
	if err == nil {
		encoded, err = m.cache.Clone(encoded) // decode may keep parts of it
	}
	if err != nil {
		return none, err
	}
	return m.decode(encoded)
}

// Equal implements sealed.Cacheable.
func (m mappedCache[S, T]) Equal(x, y T) bool {
	a, errA := m.encode(x)
	b, errB := m.encode(y)
	return errA == nil && errB == nil && m.cache.Equal(a, b)
}

// Written implements sealed.Cacheable.
func (m mappedCache[S, T]) Written(base *sealed.Version[T], value T) (any, error) {
	encoded, err := m.encode(value)
	if err != nil {
		return nil, err
	}
	return m.cache.Written(m.inner(base), encoded)
}
