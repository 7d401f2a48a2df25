package idempotent

import (
	"context"
	"errors"
	"net/url"
	"strings"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/data/aztables"
	"github.com/google/uuid"

	"github.com/azconc/azconc/optimistic"
)

// Markers remember, in a table, which message is the owner of a key: the one of several copies that is driven to its end.
// The claim is an insert; all claims of a batch that was received are one entity group transaction. There is no write when a
// message is done, since deleting it says so; only if that fails is it written down, or with DedupeComplete.
//
// The partition of a marker is the queue's name and, if the key is a UUID of version 7, the day in it: a copy always looks
// in the same place, and a day's markers can be thrown away together once no message of that day can be left.
//
// Markers are safe for concurrent use.
type Markers struct{ table *aztables.Client }

// NewMarkers returns the markers in a table, which must exist. It sends no request.
func NewMarkers(table *aztables.Client) (*Markers, error) {
	if table == nil {
		return nil, errors.New("no table client")
	}
	return &Markers{table: table}, nil
}

// The states of a marker.
const (
	stateOwned    = "owned"    // the owner is being handled, or will be again
	stateDone     = "done"     // the owner was handled, and could not be deleted
	statePoisoned = "poisoned" // the owner went to the poison queue: another copy may be handled
)

// marker is the entity.
type marker struct {
	Owner   string    `json:"owner"` // the service's id of the message
	State   string    `json:"state"`
	Expires time.Time `json:"expires"` // by when no copy of the owner can come any more
	Result  []byte    `json:"result,omitempty"`
	claim
}

// partitionOf is where the marker of a key is.
func partitionOf(queue, key string) string {
	queue = queueName(queue)
	if id, err := uuid.Parse(key); err == nil && id.Version() == 7 {
		sec, _ := id.Time().UnixTime()
		return queue + "-" + time.Unix(sec, 0).UTC().Format("20060102")
	}
	return queue
}

// queueName is the end of a queue's path.
func queueName(path string) string { return path[strings.LastIndex(path, "/")+1:] }

func rowOf(key string) string { return "k-" + url.PathEscape(key) }

// claim makes the deliveries the owners of their keys, as far as nobody else is. Copies of one whose result is kept wait for
// it. Requests: 1 per partition, and 2 per key that has a marker already.
func (k *Markers) claim(ctx context.Context, queue string, all []*delivery, by *claimer) map[*delivery]decision {
	decided := map[*delivery]decision{}
	parts := map[string][]*delivery{}
	owners := map[string]*delivery{}
	for _, d := range all {
		if first := owners[d.m.Key]; first != nil && first.m.ID != d.m.ID {
			decided[d] = duplicate // of one in the same batch, which is claimed, or else comes again
			if by.kept {
				decided[d] = busy
			}
			continue
		}
		owners[d.m.Key] = d
		p := partitionOf(queue, d.m.Key)
		parts[p] = append(parts[p], d)
	}
	for p, ds := range parts {
		k.claimIn(ctx, p, ds, decided, by)
	}
	return decided
}

func (k *Markers) claimIn(ctx context.Context, partition string, open []*delivery, decided map[*delivery]decision, by *claimer) {
	for len(open) > 0 {
		_, err := optimistic.Transact(ctx, k.table, partition, func(_ context.Context, tx *optimistic.Tx) error {
			for _, d := range open {
				if err := tx.Insert(rowOf(d.m.Key), by.marker(d)); err != nil {
					return err
				}
			}
			return nil
		}, nil)
		if err == nil {
			for _, d := range open {
				decided[d] = run
				d.claimedIn(by.session)
			}
			return
		}
		i := -1
		if conflict, ok := errors.AsType[*optimistic.ConflictError](err); ok && errors.Is(err, optimistic.ErrExists) {
			for n, d := range open {
				if strings.HasSuffix(conflict.Resource, "/"+rowOf(d.m.Key)) {
					i = n
				}
			}
		}
		if i < 0 {
			for _, d := range open {
				decided[d] = unclear
			}
			return
		}
		decided[open[i]] = k.consult(ctx, partition, open[i], by)
		open = append(append([]*delivery{}, open[:i]...), open[i+1:]...)
	}
}

// consult decides about a delivery whose key has a marker.
func (k *Markers) consult(ctx context.Context, partition string, d *delivery, by *claimer) decision {
	target := k.entity(partition, rowOf(d.m.Key))
	v, err := optimistic.Read(ctx, target, nil)
	if err != nil {
		return unclear
	}
	switch m := v.Value; {
	case m.State == stateDone && by.kept && m.Owner != d.m.ID:
		d.earlier = m.Result
		return replayed
	case m.State == stateDone:
		return finished
	case m.Owner == d.m.ID && by.session == "":
		return run // it comes again
	case m.Owner == d.m.ID:
		if what := by.contest(ctx, target, v, d); what != run {
			return what
		}
	case m.State == stateOwned && by.kept && time.Now().Before(m.Expires):
		return busy
	case m.State == stateOwned && !by.kept:
		return duplicate
	}
	if _, err := optimistic.Replace(ctx, target, v, by.marker(d), nil); err != nil {
		return unclear
	}
	d.claimedIn(by.session)
	return run
}

func (k *Markers) entity(partition, row string) optimistic.Entity[marker] {
	return optimistic.TableEntity[marker](k.table, partition, row)
}

// read returns a marker, if there is one.
func (k *Markers) read(ctx context.Context, partition, row string) (m marker, found bool, err error) {
	v, err := optimistic.Read(ctx, k.entity(partition, row), nil)
	switch {
	case errors.Is(err, optimistic.ErrNotFound):
		return marker{}, false, nil
	case err != nil:
		return marker{}, false, err
	}
	return v.Value, true, nil
}

// note writes down what has become of a key's owner.
func (k *Markers) note(ctx context.Context, queue, key string, m *Message, state string) error {
	_, err := optimistic.Transact(ctx, k.table, partitionOf(queue, key), func(_ context.Context, tx *optimistic.Tx) error {
		return tx.Upsert(rowOf(key), marker{Owner: m.ID, State: state, Expires: m.Expires.UTC(), Result: m.result})
	}, nil)
	return err
}
