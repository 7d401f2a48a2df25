package once

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/azconc/azconc/idempotent/internal/markers"
	"github.com/azconc/azconc/optimistic"
	"github.com/azconc/azconc/optimistic/tables"
)

// attempts is the entity that counts how often a key was begun. GC deletes it by its age, as it does results.
type attempts struct {
	Begun   int       `json:"begun"`
	At      time.Time `json:"at"` // the last one
	Expires time.Time `json:"expires,omitzero"`
}

// counting is how the row key of attempts ends. That of a result has no "!" but the first byte of a hash.
const counting = "!attempts"

func isCount(row string) bool { return strings.HasSuffix(row, counting) }

func (o *Once) attemptsOf(key string) tables.Entity[attempts] {
	return tables.NewEntity[attempts](o.table.Client, o.partition, row(key)+counting)
}

// attempt counts that a key is begun, before it is: a process that dies has counted. The caller holds the lock of the key.
func (o *Once) attempt(ctx context.Context, key string) error {
	if o.attempts <= 0 {
		return nil
	}
	used := 0
	_, err := optimistic.Update(ctx, o.attemptsOf(key), func(_ context.Context, a *attempts) error {
		if used = a.Begun; used >= o.attempts {
			return optimistic.ErrSkip
		}
		a.Begun, a.At, a.Expires = a.Begun+1, time.Now().UTC(), expiry(o.keep)
		return nil
	}, &optimistic.UpdateOptions{SendOptions: o.sending(), Create: true})
	if err == nil && used >= o.attempts {
		return fmt.Errorf("%s was begun %d times, without a result: %w", key, used, ErrAttempts)
	}
	return err
}

func (o *Once) forgetAttempts(ctx context.Context, key string) error {
	if o.attempts <= 0 {
		return nil
	}
	_, err := optimistic.Delete(ctx, o.attemptsOf(key), optimistic.State{}, &optimistic.WriteOptions{SendOptions: o.sending()})
	if errors.Is(err, optimistic.ErrNotFound) || markers.Missing(err) {
		return nil
	}
	return err
}
