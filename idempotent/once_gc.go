package idempotent

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore"
	"github.com/Azure/azure-sdk-for-go/sdk/azcore/to"
	"github.com/Azure/azure-sdk-for-go/sdk/data/aztables"

	"github.com/azconc/azconc/pkg/azerr"
)

// GC deletes the results that were stored longer ago than age, by the clock of the process that stored them, and
// returns how many it deleted. A key whose result is deleted is treated as never used: age must be longer than any
// retry may take. Results of Lockers with another container or prefix are kept. The empty lock blobs under "once/" are
// kept too: Locker.GC deletes them.
//
// Errors: why results cannot be listed or deleted; results deleted before the error are counted. Requests: 1 per 1000
// results that old, and 1 per 100 deleted.
func (o *Once) GC(ctx context.Context, age time.Duration) (deleted int, err error) {
	if age <= 0 {
		return 0, fmt.Errorf("Once.GC: an age of %v would delete results that are still in use", age)
	}
	before := time.Now().Add(-age).UTC().Format("2006-01-02T15:04:05.0000000Z")
	filter := "PartitionKey eq " + quoted(o.partition) + " and at lt datetime'" + before + "'"
	var old []markerKey
	list := &aztables.ListEntitiesOptions{Filter: &filter, Select: to.Ptr("PartitionKey,RowKey"), Format: to.Ptr(aztables.MetadataFormatFull)} // with ETags
	for pages := o.table.NewListEntitiesPager(list); pages.More(); {
		page, err := pages.NextPage(ctx)
		if err != nil {
			return 0, azerr.Clean(err)
		}
		for _, raw := range page.Entities {
			var e struct {
				RowKey string
				ETag   azcore.ETag `json:"odata.etag"`
			}
			if err := json.Unmarshal(raw, &e); err != nil {
				return 0, fmt.Errorf("a result is not readable: %w", err)
			}
			old = append(old, markerKey{partition: o.partition, row: e.RowKey, etag: e.ETag})
		}
	}
	for batch := range slices.Chunk(old, 100) {
		n, err := deleteMarkers(ctx, o.table, o.partition, batch)
		if deleted += n; err != nil {
			return deleted, err
		}
	}
	return deleted, nil
}
