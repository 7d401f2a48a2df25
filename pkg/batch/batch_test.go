package batch

import (
	"fmt"
	"testing"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore/policy"
	"github.com/Azure/azure-sdk-for-go/sdk/data/aztables"
	"go.uber.org/goleak"

	"github.com/azconc/azconc/pkg/azerr"
	"github.com/azconc/azconc/pkg/aztest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func adds(rows ...string) (actions []aztables.TransactionAction) {
	for _, row := range rows {
		actions = append(actions, aztables.TransactionAction{ActionType: aztables.TransactionTypeAdd,
			Entity: fmt.Appendf(nil, `{"PartitionKey":"p","RowKey":%q}`, row)})
	}
	return actions
}

func TestATransactionReturnsItsETags(t *testing.T) {
	table := aztest.New(nil).Table("orders")
	etags, err := Submit(t.Context(), table, adds("a", "b"))
	if err != nil || len(etags) != 2 || etags[0] == "" || etags[1] == "" {
		t.Errorf("Submit = %q, %v", etags, err)
	}
	etags, err = Submit(t.Context(), table, adds("c", "a"))
	if index, code, ok := azerr.Transaction(err); !ok || index != 1 || code != "EntityAlreadyExists" || etags != nil {
		t.Errorf("Submit = %q, %v, want the refusal of the second operation", etags, err)
	}
}

// The SDK takes a truncated response for a success, whatever it said.
func TestATruncatedResponseLeavesTheOutcomeOpen(t *testing.T) {
	for name, rows := range map[string][]string{"a success": {"b"}, "a refusal": {"a"}, "a refusal of many": {"a", "b", "c", "d", "e", "f"}} {
		s := aztest.New(nil)
		table := s.Table("orders")
		if _, err := Submit(t.Context(), table, adds("a")); err != nil {
			t.Fatal(err)
		}
		s.SetFaults(aztest.Fault{Kind: aztest.Truncate})
		ctx := policy.WithRetryOptions(t.Context(), policy.RetryOptions{MaxRetries: -1})
		etags, err := Submit(ctx, table, adds(rows...))
		if out := azerr.Classify(err); etags != nil || !out.Ambiguous() || !out.Transient() {
			t.Errorf("%s: %q, %v, want the error of a lost response", name, etags, err)
		}
	}
}
