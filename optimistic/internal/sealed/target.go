// Package sealed is what a target is to package optimistic: the interface behind optimistic.Target, the values that are read
// and written through it, and what a target says about itself. Only packages below optimistic can name it, so only they
// implement targets.
package sealed

import (
	"context"
	"fmt"
	"net/url"
	"reflect"

	"github.com/azconc/azconc/optimistic/internal/protocol"
	"github.com/azconc/azconc/pkg/resource"
)

// Version is a value and the version at which it was read.
type Version[T any] struct {
	protocol.State
	Value T // belongs to the caller

	carry any
}

// Carry keeps what belongs to the target with a version: the parts of the resource that a write has to send back so that
// they are preserved. It returns v.
func Carry[T any](v *Version[T], parts any) *Version[T] {
	v.carry = parts
	return v
}

// Carried returns what Carry kept with a version. It is nil for a version that no target has read.
func Carried[T any](v *Version[T]) any { return v.carry }

// Target is a value that can be read together with its version and written back on a condition. The operations of package
// optimistic handle retries, waiting and ambiguous responses; a target only knows its service.
//
// Every method sends each request by wire.Request, which sends it once and counts it, so that Result.Requests is exact. Methods
// must be safe for concurrent use.
type Target[T any] interface {
	// Resource names the target by path, never by URL: a URL may carry a SAS.
	Resource() string

	// Read fetches the value and its version. If the resource does not exist, it returns a Version with Exists ==
	// false, and no error. The value belongs to the caller: it must not share memory with anything.
	Read(ctx context.Context) (*Version[T], error)

	// Look fetches the version without the value, in one request if the service can.
	Look(ctx context.Context) (protocol.State, error)

	// Prepare encodes value for a write that replaces base, on the condition of base's ETag (or of absence), and that
	// stores lineage.
	Prepare(base *Version[T], value T, lineage protocol.Lineage, c Conditions) (protocol.Prepared, error)
}

// openers return what is behind a target that the users of a package can name; nil for the targets of other packages.
var openers []func(target any) any

// Opens adds the opener of a package, while that is initialised.
func Opens(open func(target any) any) { openers = append(openers, open) }

// Behind returns the Target behind an optimistic.Target: the value itself, or what the opener of its package returns.
func Behind[T any](target any) (Target[T], bool) {
	if t, ok := target.(Target[T]); ok {
		return t, true
	}
	for _, open := range openers {
		if t, ok := open(target).(Target[T]); ok {
			return t, true
		}
	}
	return nil, false
}

// Begin begins an operation with an optimistic.SendOptions. Package optimistic sets it while it is initialised.
var Begin func(sendOptions any, op, resource string) (*protocol.Call, error)

// Remover is a Target that can be deleted by itself.
type Remover interface {
	// Remove returns the deletion of base, on the condition of its ETag; an empty ETag deletes any version.
	Remove(base protocol.State, c Conditions) (protocol.Write, error)
}

// Conditions are checked by a write in addition to its base.
type Conditions struct {
	IfTags  string // a predicate over the blob's index tags
	LeaseID string // the id of the lease that the caller holds
}

// Cloner is a Target that a Document can open, because it can copy a value: the Document keeps the value that it wrote, and drops
// changes that fail.
type Cloner[T any] interface {
	// Clone returns a copy of value that shares no memory with it. It sends nothing and is safe for concurrent use.
	Clone(value T) (T, error)
}

// Traits are the facts about a target that a call needs beyond Target's methods. The zero value fits every target.
type Traits struct {
	// Client is the SDK client behind the target, so that a call can name a missing one.
	Client any

	// Held is set if every write through the target stores the fence of a holder.
	Held bool

	// Scope distinguishes the target's operations from those of other targets on the same resource, such as a blob's
	// metadata from its content.
	Scope string
}

// TraitsOf returns the traits of target.
func TraitsOf(target any) Traits {
	if t, ok := target.(interface{ Traits() Traits }); ok {
		return t.Traits()
	}
	return Traits{}
}

// Place returns the path of a target with its account before it. A client of a table does not tell its account, so there the
// client itself takes its place.
func Place(target interface{ Resource() string }) string {
	switch client := TraitsOf(target).Client.(type) {
	case nil:
		return target.Resource()
	case interface{ URL() string }:
		if u, err := url.Parse(client.URL()); err == nil {
			return resource.Account(u) + "/" + target.Resource()
		}
	}
	return fmt.Sprintf("%p/%s", TraitsOf(target).Client, target.Resource())
}

// NotNil returns an error that names the first nil among the arguments of a call, which are given by name and value in
// turn. A target is nil too if its client is.
func NotNil(op string, arguments ...any) error {
	for i := 0; i+1 < len(arguments); i += 2 {
		name, value := arguments[i], arguments[i+1]
		if isNil(value) {
			return fmt.Errorf("%s: %v is nil", op, name)
		}
		if client := TraitsOf(value).Client; client != nil && isNil(client) {
			return fmt.Errorf("%s: the client of %v is nil", op, name)
		}
	}
	return nil
}

func isNil(value any) bool {
	switch v := reflect.ValueOf(value); v.Kind() {
	case reflect.Invalid:
		return true
	case reflect.Pointer, reflect.Func:
		return v.IsNil()
	}
	return false
}
