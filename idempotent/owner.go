package idempotent

import (
	"context"
	"encoding/json"
	"errors"
	"strings"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/data/aztables"

	"github.com/azconc/azconc/idempotent/internal/markers"
	"github.com/azconc/azconc/optimistic"
	"github.com/azconc/azconc/pkg/azerr"
)

// owner lets one message per key be handled. The fate of a delivery depends on its marker:
//
//	marker                               fate
//	none                                 it claims the key, and runs
//	its own                              it renews the claim, and runs
//	done                                 it is deleted
//	of another, claim has not ended      it is put back
//	of another, claim has ended          it claims the key, and runs
//	poisoned                             it claims the key, and runs
type owner struct {
	c     *Consumer
	k     *Markers
	kept  bool          // results are stored
	life  time.Duration // how long a claim lasts unless it is renewed
	notes *markers.Writer
}

// leastClaim is the least time that a claim lasts unless it is renewed.
const leastClaim = 5 * time.Minute

func newOwner(c *Consumer) *owner {
	o := &owner{c: c, k: c.o.Markers, kept: c.o.Dedupe == DedupeComplete, life: max(leastClaim, 2*c.o.Visibility)}
	o.notes = markers.NewWriter(o.k.table, c.tasks.Go)
	return o
}

// decide claims the keys of a batch. Of several deliveries with the same key in this process, the first stands for all:
// its outcome decides about the others. Requests: 1 per partition; 2 more for a key that has a marker, or 1 per 14 if
// several do.
func (o *owner) decide(ctx context.Context, batch []*delivery) error {
	parts := map[string][]*delivery{}
	o.c.mu.Lock()
	copies := o.c.stock[copying]
	for _, d := range batch {
		if d.fate != undecided {
			continue
		}
		d.partition, d.row = markers.PartitionOf(o.c.queue.Path, d.m.Key), markers.RowOf(d.m.Key)
		first := o.c.keys[d.m.Key]
		switch {
		case first == nil:
			o.c.keys[d.m.Key] = d
		case first != d && copies < maxCopies:
			d.fate, d.original = copied, first
			copies++
			continue
		case first != d:
			d.fate = busy
			continue
		}
		parts[d.partition] = append(parts[d.partition], d)
	}
	o.c.mu.Unlock()
	for partition, ds := range parts {
		if err := o.claimAll(ctx, partition, ds); err != nil {
			return err
		}
	}
	return nil
}

// claimAll claims the keys of deliveries in one partition.
func (o *owner) claimAll(ctx context.Context, partition string, open []*delivery) error {
	for round := 0; len(open) > 0; round++ {
		claims := make([]markers.Write, len(open))
		for i, d := range open {
			claims[i] = markers.Write{Row: d.row, Marker: o.marker(d)}
		}
		err := o.k.table.Submit(ctx, partition, aztables.TransactionTypeAdd, claims)
		if err == nil {
			for i, d := range open {
				o.claimed(d, claims[i].Marker.Until)
			}
			return nil
		}
		out := azerr.Classify(err)
		met := open
		switch {
		case out.Kind == azerr.BadInput && len(open) > 1: // one of them cannot be written
			for i := range open {
				if err := o.claimAll(ctx, partition, open[i:i+1]); err != nil {
					return err
				}
			}
			return nil
		case out.Kind == azerr.BadInput:
			open[0].fate, open[0].why = unkeyed, azerr.Clean(err)
			return nil
		case out.Reason != azerr.Exists, round > len(open)+3: // markers exist that cannot be read
			return o.k.failed(err)
		case round == 0 && out.Index >= 0 && out.Index < len(open):
			met = open[out.Index : out.Index+1]
		}
		done, err := o.lookup(ctx, partition, met)
		if err != nil {
			return err
		}
		var rest []*delivery
		for _, d := range open {
			switch there, asked := done[d]; {
			case there:
				if err := o.consult(ctx, d); err != nil {
					return err
				}
				if d.fate == undecided { // its marker was deleted meanwhile
					rest = append(rest, d)
				}
			case asked && d.fate != undecided:
			default:
				rest = append(rest, d)
			}
		}
		open = rest
	}
	return nil
}

// marker returns the marker of a delivery's claim.
func (o *owner) marker(d *delivery) markers.Marker {
	m := markers.Marker{Owner: d.m.ID, State: markers.Owned, Expires: o.k.expiry(d.m, d.buried), Until: o.until(d, d.at), Buried: d.buried}
	if !d.carries {
		m.Counts = d.e.Counts
	}
	return m
}

// until returns when a claim ends that is made or renewed at a time of the queue's clock. If the message expires before, the
// context of its handler ends when it cannot be renewed any more.
func (o *owner) until(d *delivery, at time.Time) time.Time {
	until := at.Add(o.life)
	if over := d.m.Expires.Add(d.c.o.Visibility); over.Before(until) {
		until = over
	}
	return until.UTC()
}

// claimed records that a delivery has claimed its key, and lets it run. By the local clock the claim ends less than a second after
// until at the latest: the request that received the message was sent before the queue's clock read it, which shows whole seconds.
func (o *owner) claimed(d *delivery, until time.Time) {
	d.fate, d.owner = run, ""
	d.claim = &claim{o: o, d: d, until: d.received.Add(until.Sub(d.at))}
}

// lookup returns which deliveries have markers for their keys, and decides those whose marker is done.
// Requests: none for a single delivery, which consult reads; otherwise 1 per 14, since a filter has at most 15
// comparisons (REST: "Querying Tables and Entities").
func (o *owner) lookup(ctx context.Context, partition string, met []*delivery) (map[*delivery]bool, error) {
	found := map[*delivery]bool{}
	if len(met) == 1 {
		found[met[0]] = true
		return found, nil
	}
	const most = 14
	for len(met) > 0 {
		n := min(most, len(met))
		rows := map[string]*delivery{}
		var filter strings.Builder
		for i, d := range met[:n] {
			if i > 0 {
				filter.WriteString(" or ")
			}
			rows[d.row] = d
			filter.WriteString("RowKey eq " + markers.Quoted(d.row))
		}
		err := markers.Query(ctx, o.k.table, "PartitionKey eq "+markers.Quoted(partition)+" and ("+filter.String()+")", "RowKey,state", func(raw []byte) error {
			var e struct {
				RowKey string
				State  string `json:"state"`
			}
			err := json.Unmarshal(raw, &e)
			if d := rows[e.RowKey]; d != nil {
				if found[d] = e.State != markers.Done || o.kept; !found[d] {
					d.fate = finished
				}
			}
			return err
		})
		if err != nil {
			return nil, o.k.failed(err)
		}
		met = met[n:]
	}
	return found, nil
}

// consult decides about a delivery whose key has a marker. It stays undecided if the marker was deleted, or changed by
// another consumer, meanwhile. Requests: 1, and 1 to claim the key.
func (o *owner) consult(ctx context.Context, d *delivery) error {
	target := o.k.table.Entity(d.partition, d.row)
	v, err := optimistic.Read(ctx, target, &optimistic.ReadOptions{SendOptions: o.k.table.Reading()})
	switch {
	case errors.Is(err, optimistic.ErrNotFound) && !markers.Missing(err):
		return nil
	case err != nil:
		return o.k.failed(err)
	}
	m := v.Value
	mine := m.Owner == d.m.ID
	if !mine {
		d.owner = m.Owner
	}
	d.buried = m.Buried || m.State == markers.Poisoned
	switch {
	case m.State == markers.Done:
		d.fate, d.result, d.replays = finished, m.Result, o.kept
		if o.kept && !mine {
			d.fate = replayed
		}
		return nil
	case mine:
		d.known = m.State == markers.Owned
		d.remember(m.Counts)
		// A request that says that the message is poison may still be under way if its copy was sent to the poison queue: another
		// version of the marker refuses it.
		if m.Until.Sub(d.at) > o.life/2 && !d.e.Buried {
			o.claimed(d, m.Until)
			return nil
		}
	case m.State == markers.Owned && d.at.Before(m.Until):
		d.fate, d.pause = busy, m.Until.Sub(d.at)
		return nil
	}
	claim := o.marker(d)
	_, err = optimistic.Replace(ctx, target, v, claim, &optimistic.WriteOptions{SendOptions: o.k.table.Rewriting()})
	switch {
	case errors.Is(err, optimistic.ErrConflict), errors.Is(err, optimistic.ErrNotFound) && !markers.Missing(err):
		return nil
	case err != nil:
		return o.k.failed(err)
	}
	o.claimed(d, claim.Until)
	return nil
}
