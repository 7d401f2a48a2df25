package idempotent_test

import (
	"errors"
	"io"
	"testing"

	"github.com/azconc/azconc/idempotent"
	"github.com/azconc/azconc/idempotent/manual"
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
		"may be sent":     {&idempotent.SendError{Open: true, Err: io.EOF}, optimistic.ErrOutcomeUnknown},
		"its cause":       {&idempotent.SendError{Open: true, Err: io.EOF}, io.EOF},
		"may be deleted":  {&manual.UnknownError{}, manual.ErrOutcomeUnknown},
		"stuck":           {&idempotent.StuckError{}, idempotent.ErrStuck},
	} {
		if !errors.Is(pair[0], pair[1]) {
			t.Errorf("%s: %v is not %v", name, pair[0], pair[1])
		}
	}
	if err := error(&idempotent.SendError{Err: io.EOF}); errors.Is(err, idempotent.ErrOutcomeUnknown) {
		t.Errorf("%v is an unknown outcome", err)
	}
}
