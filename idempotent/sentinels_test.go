package idempotent_test

import (
	"errors"
	"testing"

	"github.com/azconc/azconc/optimistic"
	"github.com/azconc/azconc/pessimistic"
	"github.com/azconc/azconc/pkg/fence"
)

// TestOneSentinelMatchesTheErrorsOfEveryPackage: a caller that uses both packages asks once.
func TestOneSentinelMatchesTheErrorsOfEveryPackage(t *testing.T) {
	for name, pair := range map[string][2]error{
		"conflict":        {&optimistic.ConflictError{}, pessimistic.ErrConflict},
		"not found":       {&optimistic.NotFoundError{}, pessimistic.ErrNotFound},
		"outcome unknown": {&pessimistic.UnknownError{}, optimistic.ErrOutcomeUnknown},
		"fenced":          {optimistic.ErrFenced, fence.ErrFenced},
	} {
		if !errors.Is(pair[0], pair[1]) {
			t.Errorf("%s: %v is not %v", name, pair[0], pair[1])
		}
	}
}
