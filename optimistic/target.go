package optimistic

import (
	"github.com/azconc/azconc/optimistic/internal/protocol"
	"github.com/azconc/azconc/optimistic/internal/sealed"
)

// Target is a value in Azure Storage that can be read together with its version and written back on a condition: the
// content of a blob, its metadata, an entity, and so on. The packages below this one make targets.
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
