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
	Key string

	Done bool      // a result is stored
	At   time.Time // when it was stored, by the clock of the process that stored it; zero if it was not
	Note string    // Run.Note of that process; only Completed reads it

	// Lock is the lock of the key; empty if there is none, as of a key that is Done and does not share it. A key that is not Done is
	// being worked on while the lock is Held; otherwise it is free to be tried again.
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
	err = o.results(ctx, filter, func(row string, info KeyInfo) {
		i, locked := at[row]
		if !locked {
			i = len(keys)
			keys = append(keys, KeyInfo{Key: info.Key})
		}
		keys[i].Done, keys[i].At = true, info.At
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
	err = o.results(ctx, filter, func(_ string, info KeyInfo) { keys = append(keys, info) })
	return keys, err
}

// results calls each with every result and its row key. A lock is not looked for.
func (o *Once) results(ctx context.Context, filter string, each func(row string, info KeyInfo)) error {
	return markers.Query(ctx, o.table, filter, "RowKey,key,at,note", func(raw []byte) error {
		var e struct {
			RowKey string
			Key    string    `json:"key"`
			At     time.Time `json:"at"`
			Note   string    `json:"note"`
		}
		err := json.Unmarshal(raw, &e)
		switch {
		case err != nil:
		case isCount(e.RowKey):
			return nil
		case e.Key == "":
			e.Key, err = url.PathUnescape(e.RowKey)
		}
		if err != nil {
			return fmt.Errorf("a result is not readable: %w", err)
		}
		each(e.RowKey, KeyInfo{Key: e.Key, Done: true, At: e.At, Note: e.Note})
		return nil
	})
}
