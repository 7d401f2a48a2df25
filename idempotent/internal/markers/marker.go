// Package markers stores in a table what has become of each message key: which message has claimed it, and whether one
// was handled. It contains the format of a marker, the requests to the table, and a Writer that writes many markers in
// one transaction. What a marker means for a message is decided in package idempotent.
package markers

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"maps"
	"net/url"
	"reflect"
	"strings"
	"time"

	"github.com/google/uuid"

	"github.com/azconc/azconc/idempotent/internal/format"
	"github.com/azconc/azconc/optimistic/tables"
)

// The states of a marker.
const (
	Owned    = "owned"    // claimed: the owner is being handled, or will be again
	Done     = "done"     // handled
	Poisoned = "poisoned" // the owner went to the poison queue: a copy may be handled
)

// Marker is the stored entity.
type Marker struct {
	Owner         string    `json:"owner"` // the service's id of the message
	State         string    `json:"state"`
	Expires       time.Time `json:"expires"`        // when no copy of the owner can arrive any more
	Until         time.Time `json:"until,omitzero"` // when the claim ends, by the queue's clock
	Buried        bool      `json:"buried,omitempty"`
	Result        []byte    `json:"result,omitempty"`
	format.Counts           // of a message that cannot carry them
}

// Encode returns the entity, without a lineage: its owner shows who wrote it.
func (m Marker) Encode(partition, row string) ([]byte, error) {
	values := map[string]any{
		"until": m.Until.UTC(), "buried": m.Buried, "attempts": m.Attempts, "excused": m.Excused, "unfinished": m.Unfinished,
	}
	maps.DeleteFunc(values, func(_ string, v any) bool { return reflect.ValueOf(v).IsZero() })
	if len(m.Result) > 0 {
		values["result"] = m.Result
	}
	values["PartitionKey"], values["RowKey"] = partition, row
	values["owner"], values["state"], values["expires"] = m.Owner, m.State, m.Expires.UTC()
	stored := tables.Properties{}
	for name, value := range values {
		var err error
		if stored[name], err = tables.PropertyOf(value); err != nil {
			return nil, err
		}
	}
	return json.Marshal(stored)
}

// PartitionOf returns the partition of a key's marker.
func PartitionOf(queue, key string) string {
	queue = QueueName(queue)
	if id, err := uuid.Parse(key); err == nil && id.Version() == 7 {
		sec, _ := id.Time().UnixTime()
		if day := time.Unix(sec, 0).UTC(); day.Year() <= 9999 {
			return queue + "-" + day.Format("20060102")
		}
	}
	return queue
}

// QueueName returns the last segment of a queue's path.
func QueueName(path string) string { return path[strings.LastIndex(path, "/")+1:] }

// maxRow is the maximum length of a row or partition key in characters (REST: "Understanding the Table service data model",
// 1 KiB of UTF-16).
const maxRow = 512

// RowOf returns the row key of a key: the key, escaped, or its hash if that is too long.
func RowOf(key string) string { return RowUnder("k-", "h-", key) }

// IsRow reports whether a row key is a marker's.
func IsRow(row string) bool {
	kind, _, ok := strings.Cut(row, "-")
	return ok && (kind == "k" || kind == "h")
}

// RowUnder returns the row or partition key of a key under a prefix: the key, escaped, or its hash if that is too long. hashed
// is the prefix of a hash, which no escaped key has.
func RowUnder(prefix, hashed, key string) string {
	if row := prefix + url.PathEscape(key); len(row) <= maxRow {
		return row
	}
	sum := sha256.Sum256([]byte(key))
	return hashed + hex.EncodeToString(sum[:])
}

// Quoted returns a string literal of a filter.
func Quoted(s string) string { return "'" + strings.ReplaceAll(s, "'", "''") + "'" }
