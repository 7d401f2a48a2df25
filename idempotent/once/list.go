package once

import (
	"context"
	"encoding/json"
	"fmt"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/azconc/azconc/idempotent/internal/markers"
	"github.com/azconc/azconc/pessimistic"
)

// KeyInfo is a key as List finds it.
type KeyInfo struct {
	// Key is empty for a result whose key is not known any more: the table has only the hash of a key that has more than 512
	// bytes when it is escaped, and the lock, which has the key in its name, was deleted.
	Key string

	Done bool      // a result is stored
	At   time.Time // when it was stored, by the clock of the process that stored it; zero if it was not
	Note string    // Run.Note of that process; only Completed reads it

	// Lock is the lock of the key; empty if it was deleted. A key that is not Done is being worked on while the lock is Held;
	// otherwise it is free to be tried again.
	Lock pessimistic.LockInfo
}

// List returns the keys that have a result or a lock, in the order of the keys. It describes the moment when it looked: a
// key may be finished, or begun, meanwhile. Errors: why locks or results cannot be listed; ErrNotFound if the container
// does not exist. Requests: 1 per 5000 locks, and 1 per 1000 results; no result is read.
func (o *Once) List(ctx context.Context) (keys []KeyInfo, err error) {
	ctx, end := o.span(ctx, "once.List", "")
	defer func() { end(err) }()
	const under = "once/"
	at := map[string]int{} // index by row
	// The locks come first: a key whose lock is seen held and that is finished before its result is looked for is Done. The
	// other way round it would look as if it had failed.
	for lock, err := range o.locks.List(ctx, &pessimistic.ListOptions{Prefix: under}) {
		if err != nil {
			return nil, err
		}
		key, err := url.PathUnescape(strings.TrimPrefix(lock.Name, under))
		if err != nil || checkKey(key) != nil {
			continue // a lock that is not a key's
		}
		at[row(key)] = len(keys)
		keys = append(keys, KeyInfo{Key: key, Lock: lock})
	}
	filter := "PartitionKey eq " + markers.Quoted(o.partition)
	err = markers.Query(ctx, o.table, filter, "RowKey,at", func(raw []byte) error {
		var e struct {
			RowKey string
			At     time.Time `json:"at"`
		}
		if err := json.Unmarshal(raw, &e); err != nil {
			return fmt.Errorf("a result is not readable: %w", err)
		}
		if isCount(e.RowKey) {
			return nil
		}
		i, locked := at[e.RowKey]
		if !locked {
			i = len(keys)
			keys = append(keys, KeyInfo{Key: keyOf(e.RowKey)})
		}
		keys[i].Done, keys[i].At = true, e.At
		return nil
	})
	if err != nil {
		return nil, err
	}
	slices.SortStableFunc(keys, func(a, b KeyInfo) int { return strings.Compare(a.Key, b.Key) })
	return keys, nil
}

// Completed returns the keys that have a result, from one key on and before another, in the order of the keys as far as their bytes
// are those of letters, digits, ".", "-" and "_". A key that has more than 512 bytes when it is escaped is not found.
//
// Errors: why results cannot be listed. Requests: 1 per 1000 results.
func (o *Once) Completed(ctx context.Context, from, before string) (keys []KeyInfo, err error) {
	ctx, end := o.span(ctx, "once.Completed", "")
	defer func() { end(err) }()
	filter := "PartitionKey eq " + markers.Quoted(o.partition) + " and RowKey ge " + markers.Quoted(row(from)) + " and RowKey lt " + markers.Quoted(row(before))
	err = markers.Query(ctx, o.table, filter, "RowKey,at,note", func(raw []byte) error {
		var e struct {
			RowKey string
			At     time.Time `json:"at"`
			Note   string    `json:"note"`
		}
		if err := json.Unmarshal(raw, &e); err != nil {
			return fmt.Errorf("a result is not readable: %w", err)
		}
		if !isCount(e.RowKey) {
			keys = append(keys, KeyInfo{Key: keyOf(e.RowKey), Done: true, At: e.At, Note: e.Note})
		}
		return nil
	})
	return keys, err
}

// keyOf returns the key of a row, or nothing for the hash of one.
func keyOf(row string) string {
	key, err := url.PathUnescape(row)
	if err != nil || strings.HasPrefix(row, hashed) {
		return ""
	}
	return key
}
