package idempotent

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"net/url"
	"strings"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore/to"
	"github.com/Azure/azure-sdk-for-go/sdk/data/aztables"
	"github.com/google/uuid"

	"github.com/azconc/azconc/optimistic"
	"github.com/azconc/azconc/optimistic/tables"
	"github.com/azconc/azconc/pkg/azerr"
	"github.com/azconc/azconc/pkg/batch"
)

// Markers record in a table what has become of each key: which message has claimed it, and whether one was handled. The
// claims of all messages of one receive are one entity group transaction, and so are the completions of messages that
// were handled at about the same time. A copy of a message is deleted only when the marker says that one was handled.
//
// A process that is killed repeats the messages that it has handled and not yet recorded: at most 2*Concurrency + 127
// per Consumer.
//
// A claim ends after five minutes, or twice Visibility if that is longer. A consumer whose handler takes longer renews
// it. A copy that arrives after the claim has ended is handled in place of the message that had claimed the key, which
// may have expired or been cleared.
//
// The partition of a marker is the queue's name and, if the key is a UUID of version 7, the day encoded in it: every
// copy looks in the same place. A key that is too long for a row key is hashed.
//
// A marker remains until GC deletes it, which is safe once no copy can arrive any more. See MarkersOptions.
//
// Markers are safe for concurrent use.
type Markers struct {
	table *aztables.Client
	path  string
	o     MarkersOptions
}

// MarkersOptions configures Markers. The zero value selects the defaults.
type MarkersOptions struct {
	// Keep is how long after a message was received the same id may be sent again and still be detected as a copy. A
	// marker is kept for Keep plus the 7 days that such a copy can live, or until its own message expires if that is
	// later. A copy with a longer TTL can outlive the marker. Defaults to 7 days.
	Keep time.Duration

	// KeepPoison is Keep for a message that went to the poison queue, where it does not expire: if it is redriven
	// within KeepPoison, and a copy of it was handled meanwhile, it is not handled again. Defaults to 90 days.
	KeepPoison time.Duration

	_ struct{}
}

// NewMarkers returns the markers in a table. It sends no request: a Consumer creates the table if it does not exist.
func NewMarkers(table *aztables.Client, opts *MarkersOptions) (*Markers, error) {
	if table == nil {
		return nil, errors.New("no table client")
	}
	var o MarkersOptions
	if opts != nil {
		o = *opts
	}
	o.Keep, o.KeepPoison = cmp.Or(o.Keep, week), cmp.Or(o.KeepPoison, 90*24*time.Hour)
	if o.Keep < 0 || o.KeepPoison < 0 {
		return nil, fmt.Errorf("MarkersOptions: Keep %v or KeepPoison %v is negative", o.Keep, o.KeepPoison)
	}
	return &Markers{table: table, path: tablePath(table), o: o}, nil
}

// tablePath returns the path of a table.
func tablePath(table *aztables.Client) string {
	partition, _, _ := strings.Cut(tables.NewEntity[marker](table, "p", "r").Resource(), "/")
	return partition
}

// The states of a marker.
const (
	stateOwned    = "owned"    // claimed: the owner is being handled, or will be again
	stateDone     = "done"     // handled
	statePoisoned = "poisoned" // the owner went to the poison queue: a copy may be handled
)

// marker is the stored entity. One without Until was written by a version that recorded handling only by deleting the
// owner: until it expires, its owner counts as handled.
type marker struct {
	Owner   string    `json:"owner"` // the service's id of the message
	State   string    `json:"state"`
	Expires time.Time `json:"expires"`        // when no copy of the owner can arrive any more
	Until   time.Time `json:"until,omitzero"` // when the claim ends, by the queue's clock
	Buried  bool      `json:"buried,omitempty"`
	Result  []byte    `json:"result,omitempty"`
	claim
	ledger
}

// ledger holds the counts that a marker stores for a message that is not an envelope and cannot carry them.
type ledger struct {
	Attempts   int `json:"attempts,omitempty"`
	Excused    int `json:"excused,omitempty"`
	Unfinished int `json:"unfinished,omitempty"`
}

// expiry returns when no copy of a message can arrive any more.
func (k *Markers) expiry(m *Message, buried bool) time.Time {
	until := time.Now().Add(k.o.Keep + week)
	if buried {
		until = time.Now().Add(max(k.o.Keep, k.o.KeepPoison) + week)
	}
	if m.Expires.After(until) {
		until = m.Expires
	}
	return until.UTC()
}

// partitionOf returns the partition of a key's marker.
func partitionOf(queue, key string) string {
	queue = queueName(queue)
	if id, err := uuid.Parse(key); err == nil && id.Version() == 7 {
		sec, _ := id.Time().UnixTime()
		return queue + "-" + time.Unix(sec, 0).UTC().Format("20060102")
	}
	return queue
}

// queueName returns the last segment of a queue's path.
func queueName(path string) string { return path[strings.LastIndex(path, "/")+1:] }

// maxRow is the maximum length of a row key in characters (REST: "Understanding the Table service data model", 1 KiB of
// UTF-16).
const maxRow = 512

// rowOf returns the row key of a key: the key, escaped, or its hash if that is too long.
func rowOf(key string) string { return rowUnder("k-", "h-", key) }

func rowUnder(prefix, hashed, key string) string {
	if row := prefix + url.PathEscape(key); len(row) <= maxRow {
		return row
	}
	sum := sha256.Sum256([]byte(key))
	return hashed + hex.EncodeToString(sum[:])
}

func (k *Markers) entity(partition, row string) tables.Entity[marker] {
	return tables.NewEntity[marker](k.table, partition, row)
}

// markerTries bounds how often a request is sent: during an outage, probes follow.
const markerTries = 2

// sending configures how markers are read and replaced.
func sending() optimistic.Sending {
	return optimistic.Sending{Tries: markerTries, TryTimeout: tryTimeout, LineageSize: -1}
}

// read returns a marker, if it exists.
func (k *Markers) read(ctx context.Context, partition, row string) (m marker, found bool, err error) {
	v, err := optimistic.Read(ctx, k.entity(partition, row), &optimistic.ReadOptions{Sending: sending()})
	switch {
	case errors.Is(err, optimistic.ErrNotFound):
		return marker{}, false, nil
	case err != nil:
		return marker{}, false, k.failed(err)
	}
	return v.Value, true, nil
}

// write is a marker to be written.
type write struct {
	row string
	m   marker
}

// submit writes markers of one partition in one transaction, and creates the table if it does not exist. Repeating it
// is harmless: an insert that was applied is recognized by its owner. Requests: 1.
func (k *Markers) submit(ctx context.Context, partition string, how aztables.TransactionType, writes []write) error {
	actions := make([]aztables.TransactionAction, len(writes))
	for i, w := range writes {
		text, err := w.m.encode(partition, w.row)
		if err != nil {
			return err
		}
		actions[i] = aztables.TransactionAction{ActionType: how, Entity: text}
	}
	for created := false; ; created = true {
		err := resend(ctx, markerTries, tryTimeout, func(ctx context.Context) error {
			_, err := batch.Submit(ctx, k.table, actions)
			return err
		})
		if created || !azerr.Has(err, "TableNotFound") {
			return err
		}
		err = once(ctx, func(ctx context.Context) error {
			_, err := k.table.CreateTable(ctx, nil)
			return err
		})
		if err != nil && !azerr.Has(err, "TableAlreadyExists") {
			return fmt.Errorf("create table %s: %w", k.path, err)
		}
	}
}

// note writes one marker. Requests: 1.
func (k *Markers) note(ctx context.Context, queue, key string, m marker) error {
	return k.failed(k.submit(ctx, partitionOf(queue, key), aztables.TransactionTypeInsertReplace, []write{{rowOf(key), m}}))
}

// states returns, by row, the owner and the state of the markers that match a filter. Requests: 1.
func (k *Markers) states(ctx context.Context, filter string) (map[string]marker, error) {
	all := map[string]marker{}
	err := resend(ctx, markerTries, tryTimeout, func(ctx context.Context) error {
		pages := k.table.NewListEntitiesPager(&aztables.ListEntitiesOptions{Filter: &filter, Select: to.Ptr("RowKey,owner,state"), Format: to.Ptr(aztables.MetadataFormatNone)})
		for pages.More() {
			page, err := pages.NextPage(ctx)
			if err != nil {
				return err
			}
			for _, raw := range page.Entities {
				var e struct {
					RowKey       string
					Owner, State string
				}
				if err := json.Unmarshal(raw, &e); err != nil {
					return err
				}
				all[e.RowKey] = marker{Owner: e.Owner, State: e.State}
			}
		}
		return nil
	})
	return all, err
}

// missing reports whether the table does not exist, in which case nothing is recorded.
func missing(err error) bool { return azerr.Has(err, "TableNotFound") }

// failed marks an error of the table as not the message's fault.
func (k *Markers) failed(err error) error {
	if err == nil {
		return nil
	}
	return &outage{fmt.Errorf("markers in table %s: %w", k.path, azerr.Clean(err)), func(ctx context.Context) error {
		return probeTable(ctx, k.table)
	}}
}

// probeTable asks whether a table answers. A response that the entity does not exist is an answer.
func probeTable(ctx context.Context, table *aztables.Client) error {
	_, err := table.GetEntity(ctx, "azconcprobe", "azconcprobe", nil)
	if err == nil || azerr.Classify(err).Kind == azerr.NotFound && !azerr.Has(err, "TableNotFound") {
		return nil
	}
	return azerr.Clean(err)
}

// stored configures how a marker is written, without a lineage: its owner shows who wrote it.
type stored struct {
	PartitionKey, RowKey string
	Owner                string `json:"owner"`
	State                string `json:"state"`
	Expires              string `json:"expires"`
	ExpiresType          string `json:"expires@odata.type"`
	Until                string `json:"until,omitempty"`
	UntilType            string `json:"until@odata.type,omitempty"`
	Awaited              string `json:"awaited,omitempty"`
	AwaitedType          string `json:"awaited@odata.type,omitempty"`
	Buried               bool   `json:"buried,omitempty"`
	Result               []byte `json:"result,omitempty"`
	ResultType           string `json:"result@odata.type,omitempty"`
	Session              string `json:"session,omitempty"`
	Delivery             int    `json:"delivery,omitempty"`
	Waited               int    `json:"waited,omitempty"`
	Freed                int    `json:"freed,omitempty"`
	ledger
}

func (m marker) encode(partition, row string) ([]byte, error) {
	s := stored{PartitionKey: partition, RowKey: row, Owner: m.Owner, State: m.State, Buried: m.Buried, Result: m.Result,
		Session: m.Session, Delivery: m.Delivery, Waited: m.Waited, Freed: m.Freed, ledger: m.ledger}
	s.Expires, s.ExpiresType = dateTime(m.Expires)
	s.Until, s.UntilType = dateTime(m.Until)
	s.Awaited, s.AwaitedType = dateTime(m.Awaited)
	if len(m.Result) > 0 {
		s.ResultType = "Edm.Binary"
	}
	return json.Marshal(s)
}

func dateTime(t time.Time) (text, edm string) {
	if t.IsZero() {
		return "", ""
	}
	return t.UTC().Format("2006-01-02T15:04:05.0000000Z"), "Edm.DateTime"
}
