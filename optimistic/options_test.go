package optimistic_test

import (
	"testing"

	"github.com/azconc/azconc/optimistic"
	"github.com/azconc/azconc/optimistic/internal/protocol"
)

// The values stand in the documentation, and the protocol has its own.
func TestTheDocumentedConstantsAreTheProtocols(t *testing.T) {
	type constants [8]any
	documented := constants{optimistic.DefaultMinRate, optimistic.LineageKey, optimistic.OperationsKey, optimistic.OperationsKept, optimistic.OperationAge,
		int(optimistic.ConfirmByPath), int(optimistic.ConfirmAlways), int(optimistic.ConfirmNever)}
	actual := constants{protocol.DefaultMinRate, protocol.LineageKey, protocol.OperationsKey, protocol.OperationsKept, protocol.OperationAge,
		int(protocol.ConfirmByPath), int(protocol.ConfirmAlways), int(protocol.ConfirmNever)}
	if documented != actual {
		t.Errorf("%v, but the protocol has %v", documented, actual)
	}
}
