package markers

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"sync"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore"
	"github.com/Azure/azure-sdk-for-go/sdk/azcore/policy"
	"github.com/Azure/azure-sdk-for-go/sdk/azcore/to"
	"github.com/Azure/azure-sdk-for-go/sdk/data/aztables"

	"github.com/azconc/azconc/idempotent/internal/send"
	"github.com/azconc/azconc/optimistic"
	"github.com/azconc/azconc/optimistic/tables"
	"github.com/azconc/azconc/pkg/azerr"
)

const (
	// SweepEvery is after how many requests of the work another step is made: with maxBatches, deletions cost what they may.
	SweepEvery = 1000

	// maxBatches bounds the transactions of one step.
	maxBatches = 20

	// Slack is how long a marker is kept after its message has expired. A message can exist for as long as its last visibility
	// timeout, which never extends beyond its expiry; a day covers clock differences.
	Slack = 24 * time.Hour

	// maxAhead is how far the local clock may be ahead of the service's. It is less than Slack.
	maxAhead = time.Hour
)

// errAhead reports that the local clock cannot say what has expired.
var errAhead = errors.New("the clock of this machine is ahead of the service's: nothing is deleted by it")

// Key identifies a version of an entity.
type Key struct {
	Partition string      `json:"PartitionKey"`
	Row       string      `json:"RowKey"`
	ETag      azcore.ETag `json:"odata.etag"`
}

// Expired is the filter of what may be deleted. What was stored without a time does not match it.
func Expired() string {
	return "expires lt datetime'" + time.Now().UTC().Add(-Slack).Format(time.RFC3339) + "'"
}

// DeleteExpired deletes what the filter matches and is meant, except what has changed since it was listed. The filter is made from the
// local time; if that is ahead of the service's clock, nothing is deleted. What was deleted by a request whose outcome is unknown is not
// counted. Requests: 1 per 1000 that match, and 1 per 100 deleted.
func DeleteExpired(ctx context.Context, table *Table, filter string, meant func(Key) bool) (deleted int, err error) {
	var next aztables.ListEntitiesOptions
	for more := true; more; more = next.NextPartitionKey != nil {
		expired, err := table.page(ctx, &next, filter, meant)
		if err != nil {
			return deleted, err
		}
		for _, batch := range batches(expired) {
			n, err := deleteVersions(ctx, table, batch[0].Partition, batch)
			if deleted += n; err != nil {
				return deleted, err
			}
		}
	}
	return deleted, nil
}

// Sweep deletes what has expired in a range of a table, step by step. A step is one page of the range, which begins where the
// one before has ended, so that what is kept for long does not hide what comes after it.
type Sweep struct {
	Table *Table

	busy   sync.Mutex // held while a step is made; guards what follows
	within string     // the range of the step before
	next   aztables.ListEntitiesOptions
}

// Step is DeleteExpired for the next page of what has expired within a range, which is a filter: up to 1000 entities. In another range
// than that of the step before it begins with the first page. Where another process deletes the same, Step leaves it to that one, and
// so it does while another goroutine makes a step. Requests: 1, and 1 per 100 deleted, at most 21.
func (s *Sweep) Step(ctx context.Context, within string, meant func(Key) bool) (deleted int, err error) {
	if !s.busy.TryLock() {
		return 0, nil
	}
	defer s.busy.Unlock()
	if within != s.within {
		s.within, s.next = within, aztables.ListEntitiesOptions{}
	}
	expired, err := s.Table.page(ctx, &s.next, within+" and "+Expired(), meant)
	if Missing(err) {
		return 0, nil
	}
	if err != nil {
		return 0, err
	}
	all := batches(expired)
	for _, batch := range all[:min(len(all), maxBatches)] {
		switch err := deleteAll(ctx, s.Table, batch[0].Partition, batch); {
		case errors.Is(err, optimistic.ErrConflict), errors.Is(err, optimistic.ErrNotFound), errors.Is(err, optimistic.ErrOutcomeUnknown):
			return deleted, nil // what is left is found on the next way through the range
		case err != nil:
			return deleted, azerr.Clean(err)
		}
		deleted += len(batch)
	}
	return deleted, nil
}

// page returns what the filter matches and is meant on the page at next, which it moves to the following one.
func (t *Table) page(ctx context.Context, next *aztables.ListEntitiesOptions, filter string, meant func(Key) bool) (keys []Key, err error) {
	next.Filter, next.Select, next.Format = &filter, to.Ptr("PartitionKey,RowKey"), to.Ptr(aztables.MetadataFormatFull) // with ETags
	page, err := send.Page(ctx, t.wire(), queryEntities, func(ctx context.Context) (page aztables.ListEntitiesResponse, err error) {
		var resp *http.Response
		page, err = t.Client.NewListEntitiesPager(next).NextPage(policy.WithCaptureResponse(ctx, &resp))
		if err != nil {
			return page, err
		}
		if date, err := http.ParseTime(resp.Header.Get("Date")); err != nil || time.Until(date) < -maxAhead {
			return page, errAhead
		}
		return page, nil
	})
	if err != nil {
		return nil, t.queryFailed(err)
	}
	next.NextPartitionKey, next.NextRowKey = page.NextPartitionKey, page.NextRowKey
	for _, raw := range page.Entities {
		var key Key
		if err := json.Unmarshal(raw, &key); err != nil {
			return nil, fmt.Errorf("an entity is not readable: %w", err)
		}
		if meant(key) {
			keys = append(keys, key)
		}
	}
	return keys, nil
}

// batches divides keys into those of one transaction each: up to 100 that follow each other in a partition.
func batches(keys []Key) (all [][]Key) {
	for len(keys) > 0 {
		n := 1
		for n < min(len(keys), 100) && keys[n].Partition == keys[0].Partition {
			n++
		}
		all, keys = append(all, keys[:n]), keys[n:]
	}
	return all
}

// deleteVersions deletes entities of one partition in one transaction, except those that have changed since they were
// listed.
func deleteVersions(ctx context.Context, table *Table, partition string, keys []Key) (deleted int, err error) {
	for len(keys) > 0 {
		err := deleteAll(ctx, table, partition, keys)
		switch {
		case err == nil:
			return len(keys), nil
		case errors.Is(err, optimistic.ErrOutcomeUnknown): // what is left of them the next GC finds
			return 0, nil
		}
		conflict, ok := errors.AsType[*optimistic.ConflictError](err)
		left := slices.DeleteFunc(slices.Clone(keys), func(key Key) bool {
			return ok && conflict.Resource == table.Entity(partition, key.Row).Resource()
		})
		if len(left) == len(keys) {
			return 0, err
		}
		keys = left
	}
	return 0, nil
}

// deleteAll deletes up to 100 entities of one partition, or none if one of them has changed.
func deleteAll(ctx context.Context, table *Table, partition string, keys []Key) error {
	_, err := tables.Transact(ctx, table.Client, partition, func(_ context.Context, tx *tables.Tx) error {
		for _, key := range keys {
			if err := tx.DeleteVersion(key.Row, key.ETag); err != nil {
				return err
			}
		}
		return nil
	}, &tables.TransactOptions{Attempts: 1, SendOptions: table.Sending(optimistic.SendOptions{Tries: Tries, TryTimeout: send.TryTimeout})})
	return err
}

// Query calls each with every entity that matches the filter, with the properties in properties, a list with commas, and its ETag.
// A table that does not exist has none. Requests: 1 per 1000 entities.
func Query(ctx context.Context, table *Table, filter, properties string, each func(raw []byte) error) error {
	list := &aztables.ListEntitiesOptions{Filter: &filter, Select: &properties, Format: to.Ptr(aztables.MetadataFormatFull)} // with ETags
	for pages := table.Client.NewListEntitiesPager(list); pages.More(); {
		page, err := send.Page(ctx, table.wire(), queryEntities, pages.NextPage)
		if Missing(err) {
			return nil
		}
		if err != nil {
			return table.queryFailed(err)
		}
		for _, raw := range page.Entities {
			if err := each(raw); err != nil {
				return err
			}
		}
	}
	return nil
}

const queryEntities = "Query Entities"

func (t *Table) queryFailed(err error) error {
	return fmt.Errorf("query table %s: %w", t.Path, azerr.Clean(err))
}
