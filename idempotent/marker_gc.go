package idempotent

import (
	"encoding/json"
	"fmt"
	"time"
)

// markerKey names a marker.
type markerKey struct{ partition, row string }

// expiredMarker reads an entity and tells whether it is a marker of a message that cannot come any more.
func expiredMarker(raw []byte, now time.Time) (markerKey, bool, error) {
	var e struct {
		PartitionKey, RowKey string
		Expires              time.Time `json:"expires"`
	}
	if err := json.Unmarshal(raw, &e); err != nil {
		return markerKey{}, false, fmt.Errorf("a marker is not readable: %w", err)
	}
	// A message can be under way for as long as its last visibility timeout, which never reaches beyond its end; a day more
	// covers clocks.
	gone := !e.Expires.IsZero() && now.After(e.Expires.Add(24*time.Hour))
	return markerKey{e.PartitionKey, e.RowKey}, gone, nil
}
