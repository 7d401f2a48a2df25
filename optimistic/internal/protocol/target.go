package protocol

import (
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore"

	"github.com/azconc/azconc/pkg/lease"
)

// State is the version of a resource without its value.
type State struct {
	Exists       bool
	ETag         azcore.ETag // empty if the resource does not exist
	LastModified time.Time   // by the service's clock; zero if not known
	Created      time.Time   // when the resource was created, by the service's clock; zero if not known
	Lineage      Lineage

	decided *decision // see Decided
	date    time.Time // of the response, see Dated
}

// Traits are the facts about a target that a call needs beyond Target's methods. The zero value fits every target.
type Traits struct {
	// Client is the SDK client behind the target, so that a call can name a missing one.
	Client any

	// Scope distinguishes the target's operations from those of other targets on the same resource, such as a blob's
	// metadata from its content.
	Scope string

	// Lease is the resource as something that an escalated update can lease, to exclude other writers. It is nil if it
	// cannot be leased.
	Lease lease.Resource
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
