package protocol

import "context"

// Traits are what a call needs to know about a target beyond Target's methods. The zero value fits every target.
type Traits struct {
	// Client is the SDK client behind the target, by which contending writers recognize each other. It is comparable.
	Client any

	// Scope separates the target's operations from those of other targets on the same resource, such as a blob's
	// metadata from its content.
	Scope string

	// Lease returns a lease on the resource under a new id. It sends nothing. Nil if an update cannot lease the
	// resource.
	Lease func(id string) (Lease, error)
}

// Lease keeps other writers away from a resource for the moment of an escalated update. Its id is chosen by the client,
// so repeating a request whose response was lost is harmless. Each method sends one request.
type Lease interface {
	Acquire(ctx context.Context) error
	Release(ctx context.Context) error
}

// TraitsOf returns the traits of target, or of the target that it wraps: a caller's Target has a method Unwrap that
// returns it, unless it embeds it.
func TraitsOf(target any) Traits {
	for {
		if t, ok := target.(interface{ Traits() Traits }); ok {
			return t.Traits()
		}
		outer, ok := target.(interface{ Unwrap() any })
		if !ok {
			return Traits{}
		}
		target = outer.Unwrap()
	}
}
