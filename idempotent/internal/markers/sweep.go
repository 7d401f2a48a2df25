package markers

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"sync"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore"
	"github.com/Azure/azure-sdk-for-go/sdk/azcore/policy"
	"github.com/Azure/azure-sdk-for-go/sdk/azcore/to"
	"github.com/Azure/azure-sdk-for-go/sdk/data/aztables"

	"github.com/azconc/azconc/idempotent/internal/send"
	"github.com/azconc/azconc/optimistic"
	"github.com/azconc/azconc/pkg/azerr"
)

const (
	// SweepEvery is after how many requests of the work another step is made: with maxBatches, deletions cost what they may.
	SweepEvery = 1000

	// maxBatches bounds the transactions of one step.
	maxBatches = 20

	// maxAhead is how far the local clock may be ahead of the service's. It is less than what is kept for the difference of clocks.
	maxAhead = time.Hour
)

// errAhead reports that the local clock cannot say what has expired.
var errAhead = errors.New("the clock of this machine is ahead of the service's: nothing is deleted by it")

// Sweep deletes what has expired in a range of a table, step by step. A step is one page of the range, which begins where the
// one before has ended, so that what is kept for long does not hide what comes after it.
type Sweep struct {
	Table *Table

	busy sync.Mutex // held while a step is made; guards what follows
	next aztables.ListEntitiesOptions
}

// Step deletes what the filter matches on the next page, up to 1000 entities, except what is not meant and what has changed since.
// The filter is made from the local time; if that is ahead of the service's clock, nothing is deleted. Where
// another process deletes the same, Step leaves it to that one, and so it does while another goroutine makes a step.
//
// Requests: 1, and 1 per 100 deleted, at most 21.
func (s *Sweep) Step(ctx context.Context, filter string, meant func(Key) bool) (deleted int, err error) {
	if !s.busy.TryLock() {
		return 0, nil
	}
	defer s.busy.Unlock()
	s.next.Filter, s.next.Select, s.next.Format = &filter, to.Ptr("PartitionKey,RowKey"), to.Ptr(aztables.MetadataFormatFull) // with ETags
	var page aztables.ListEntitiesResponse
	err = send.Resend(ctx, s.Table.wire(), queryEntities, Tries, send.TryTimeout, func(ctx context.Context) (err error) {
		var resp *http.Response
		list := s.Table.Client.NewListEntitiesPager(&s.next)
		if page, err = list.NextPage(policy.WithCaptureResponse(ctx, &resp)); err != nil {
			return err
		}
		if date, err := http.ParseTime(resp.Header.Get("Date")); err != nil || time.Until(date) < -maxAhead {
			return errAhead
		}
		return nil
	})
	if err != nil {
		if Missing(err) {
			return 0, nil
		}
		return 0, azerr.Clean(err)
	}
	s.next.NextPartitionKey, s.next.NextRowKey = page.NextPartitionKey, page.NextRowKey
	var expired []Key
	for _, raw := range page.Entities {
		var e struct {
			PartitionKey, RowKey string
			ETag                 azcore.ETag `json:"odata.etag"`
		}
		if err := json.Unmarshal(raw, &e); err != nil {
			return 0, fmt.Errorf("an entity is not readable: %w", err)
		}
		if key := (Key{e.PartitionKey, e.RowKey, e.ETag}); meant(key) {
			expired = append(expired, key)
		}
	}
	for batches := 0; len(expired) > 0 && batches < maxBatches; batches++ {
		n := 1
		for n < min(len(expired), 100) && expired[n].Partition == expired[0].Partition {
			n++
		}
		switch err := deleteAll(ctx, s.Table, expired[0].Partition, expired[:n]); {
		case errors.Is(err, optimistic.ErrConflict), errors.Is(err, optimistic.ErrNotFound), errors.Is(err, optimistic.ErrOutcomeUnknown):
			return deleted, nil // what is left is found on the next way through the range
		case err != nil:
			return deleted, azerr.Clean(err)
		}
		deleted, expired = deleted+n, expired[n:]
	}
	return deleted, nil
}
