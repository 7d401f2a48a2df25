package markers

import (
	"crypto/sha256"
	"encoding/hex"
	"net/url"
	"strings"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/data/aztables"
	"github.com/google/uuid"

	"github.com/azconc/azconc/optimistic/tables"
)

// tablePath returns the path of a table.
func tablePath(table *aztables.Client) string {
	partition, _, _ := strings.Cut(tables.NewEntity[Marker](table, "p", "r").Resource(), "/")
	return partition
}

// PartitionOf returns the partition of a key's marker.
func PartitionOf(queue, key string) string {
	queue = QueueName(queue)
	if id, err := uuid.Parse(key); err == nil && id.Version() == 7 {
		sec, _ := id.Time().UnixTime()
		return queue + "-" + time.Unix(sec, 0).UTC().Format("20060102")
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

// IsRow reports whether a row key is one that this package writes: a marker's, or that of facts.
func IsRow(row string) bool {
	kind, _, ok := strings.Cut(row, "-")
	return ok && (kind == "k" || kind == "h" || kind == "f")
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
