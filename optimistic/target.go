package optimistic

import (
	"fmt"

	"github.com/azconc/azconc/optimistic/internal/protocol"
	"github.com/azconc/azconc/optimistic/internal/sealed"
)

// Target is a value in Azure Storage that can be read together with its version and written back on a condition: the
// content of a blob, its metadata, an entity, and so on. The packages below this one make targets.
//
// The interface is sealed: only the packages of azconc implement it. All targets are safe for concurrent use.
type Target[T any] interface {
	// Resource names the target by path, never by URL: a URL may carry a SAS.
	Resource() string

	targets(T)
}

// Sealed makes a type of the packages below this one a Target. Elsewhere it is of no use: the operations refuse a type that they
// do not know.
type Sealed[T any] struct{}

func (Sealed[T]) targets(T) {} //nolint:unused // the method set of a Target has it

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
	t, ok := sealed.Behind[T](target)
	if !ok {
		return nil, fmt.Errorf("%s: target: a %T is none of azconc's; the packages below optimistic make targets", op, target)
	}
	return t, sealed.NotNil(op, "target", t)
}
