package protocol

import (
	"context"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore"
)

// State is the version of a resource without its value.
type State struct {
	Exists       bool
	ETag         azcore.ETag // empty if the resource does not exist
	LastModified time.Time   // by the service's clock; zero if not known
	Created      time.Time   // when the resource was created, by the service's clock; zero if not known
	Lineage      Lineage
}

// Traits are the facts about a target that a call needs beyond Target's methods. The zero value fits every target.
type Traits struct {
	// Client is the SDK client behind the target, by which contending writers recognize each other. It is comparable.
	Client any

	// Scope distinguishes the target's operations from those of other targets on the same resource, such as a blob's
	// metadata from its content.
	Scope string

	// Lease returns a lease on the resource with the id. It sends nothing. It is nil if an update cannot lease the
	// resource.
	Lease func(id string) (Lease, error)
}

// Lease excludes other writers from a resource during an escalated update. The client chooses its id, so repeating a
// request whose response was lost is harmless. Each method sends one request.
type Lease interface {
	Acquire(ctx context.Context) error
	Release(ctx context.Context) error
}

// TraitsOf returns the traits of target, or of the target that it wraps. A caller's Target that wraps another has a
// method Unwrap() any that returns it, or embeds it.
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
