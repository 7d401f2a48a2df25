package idempotent

import (
	"context"
	"errors"
	"strings"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/data/aztables"

	"github.com/azconc/azconc/optimistic"
	"github.com/azconc/azconc/optimistic/tables"
	"github.com/azconc/azconc/pkg/azerr"
)

// owner lets one message per key be handled. The fate of a delivery depends on its marker:
//
//	marker                                  fate
//	none                                    it claims the key, and runs
//	its own                                 it renews the claim, and runs; see Sessions
//	done                                    it is deleted
//	another's, whose claim has not ended    it is put back
//	another's, whose claim has ended        it claims the key, and runs
//	poisoned                                it claims the key, and runs
type owner struct {
	c    *Consumer
	k    *Markers
	kept bool // results are stored
}

// claimLife is how long a claim lasts unless it is renewed.
func (o *owner) claimLife() time.Duration { return max(5*time.Minute, 2*o.c.o.MaxVisibility) }

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
		p := partitionOf(o.c.path, d.m.Key)
		parts[p] = append(parts[p], d)
	}
	o.c.mu.Unlock()
	by := o.c.claimer()
	for p, ds := range parts {
		if err := o.claim(ctx, p, ds, by); err != nil {
			return err
		}
	}
	return nil
}

// claim claims the keys of deliveries in one partition.
func (o *owner) claim(ctx context.Context, partition string, open []*delivery, by *claimer) error {
	for round := 0; len(open) > 0; round++ {
		err := o.k.submit(ctx, partition, aztables.TransactionTypeAdd, o.claims(open, by))
		if err == nil {
			for _, d := range open {
				o.claimed(d, by, o.until(d))
				d.fate = run
			}
			return nil
		}
		out := azerr.Classify(err)
		met := open
		switch {
		case out.Reason == azerr.Exists && round > len(open)+3:
			return o.k.failed(err) // markers exist that cannot be read
		case out.Reason == azerr.Exists && round == 0 && out.Index >= 0 && out.Index < len(open):
			met = open[out.Index : out.Index+1]
		case out.Reason == azerr.Exists:
		case out.Kind == azerr.BadInput && len(open) > 1: // one of them cannot be written
			for i := range open {
				if err := o.claim(ctx, partition, open[i:i+1], by); err != nil {
					return err
				}
			}
			return nil
		case out.Kind == azerr.BadInput:
			open[0].fate, open[0].why = unkeyed, azerr.Clean(err)
			return nil
		default:
			return o.k.failed(err)
		}
		done, err := o.lookup(ctx, partition, met)
		if err != nil {
			return err
		}
		var rest []*delivery
		for _, d := range open {
			switch there, asked := done[d]; {
			case there:
				if err := o.consult(ctx, partition, d, by); err != nil {
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

func (o *owner) until(d *delivery) time.Time { return d.at.Add(o.claimLife()).UTC() }

func (o *owner) claims(open []*delivery, by *claimer) []write {
	all := make([]write, len(open))
	for i, d := range open {
		all[i] = write{rowOf(d.m.Key), o.marker(d, by, o.until(d))}
	}
	return all
}

// marker returns the marker of a delivery's claim.
func (o *owner) marker(d *delivery, by *claimer, until time.Time) marker {
	m := marker{Owner: d.m.ID, State: stateOwned, Expires: o.k.expiry(d.m, d.buried), Until: until, Buried: d.buried}
	if by.session != "" {
		m.claim = claim{Session: by.session, Delivery: d.m.Deliveries, Waited: d.waited}
	}
	if d.e.as != Envelope {
		m.ledger = ledger{d.e.Attempts, d.e.Excused, d.e.Unfinished}
	}
	return m
}

// claimed records that a delivery has claimed its key. By the local clock the claim ends no later than until, since the
// request that received the message was sent before the time that the queue's clock reported.
func (o *owner) claimed(d *delivery, by *claimer, until time.Time) {
	d.until = d.received.Add(until.Sub(d.at))
	d.claimed = by.session != ""
	if d.e.as != Envelope && d.waited > 0 && d.e.Attempts == 0 {
		d.m.Attempt = max(1, d.m.Deliveries-d.e.Excused-d.waited)
	}
}

// lookup finds out which deliveries have markers for their keys, and decides those whose marker is done on the way.
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
			row := rowOf(d.m.Key)
			rows[row] = d
			filter.WriteString("RowKey eq " + quoted(row))
		}
		states, err := o.k.states(ctx, "PartitionKey eq "+quoted(partition)+" and ("+filter.String()+")")
		if err != nil {
			return nil, o.k.failed(err)
		}
		for row, m := range states {
			d := rows[row]
			switch {
			case d == nil:
			case m.State == stateDone && (!o.kept || m.Owner == d.m.ID):
				found[d] = false
				d.fate = finished
			default:
				found[d] = true
			}
		}
		met = met[n:]
	}
	return found, nil
}

// consult decides about a delivery whose key has a marker. It stays undecided if the marker was deleted, or changed by
// another consumer, meanwhile. Requests: 1, and 1 to claim the key.
func (o *owner) consult(ctx context.Context, partition string, d *delivery, by *claimer) error {
	target := o.k.entity(partition, rowOf(d.m.Key))
	v, err := optimistic.Read(ctx, target, &optimistic.ReadOptions{Sending: sending()})
	switch {
	case errors.Is(err, optimistic.ErrNotFound) && !azerr.Has(err, "TableNotFound"):
		return nil
	case err != nil:
		return o.k.failed(err)
	}
	m := v.Value
	mine := m.Owner == d.m.ID
	d.buried = m.Buried || m.State == statePoisoned
	switch {
	case m.State == stateDone && o.kept && !mine:
		d.earlier, d.fate = m.Result, replayed
		return nil
	case m.State == stateDone:
		d.fate = finished
		return nil
	case mine:
		d.known = !m.Until.IsZero()
		d.remember(m.ledger)
		if m.Session == "" && by.session == "" && m.Until.Sub(d.at) > o.claimLife()/2 {
			o.claimed(d, by, m.Until)
			d.fate = run
			return nil
		}
	case m.State == stateOwned && m.Until.IsZero() && time.Now().Before(m.Expires):
		if d.fate = finished; o.kept {
			d.fate = busy
		}
		return nil
	case m.State == stateOwned && d.at.Before(m.Until):
		d.fate, d.pause = busy, m.Until.Sub(d.at)
		return nil
	}
	if by.session != "" && m.State == stateOwned {
		what, err := by.contest(ctx, target, v, d)
		if err != nil {
			return err
		}
		if what != run {
			d.fate = what
			return nil
		}
	}
	until := o.until(d)
	_, err = optimistic.Replace(ctx, target, v, o.marker(d, by, until), &optimistic.WriteOptions{Sending: optimistic.Sending{Tries: markerTries, TryTimeout: tryTimeout}})
	switch {
	case errors.Is(err, optimistic.ErrConflict), errors.Is(err, optimistic.ErrNotFound) && !azerr.Has(err, "TableNotFound"):
		return nil
	case err != nil:
		return o.k.failed(err)
	}
	o.claimed(d, by, until)
	d.fate = run
	return nil
}

// counts are the counts that a marker stores for a message that cannot carry them.
type counts struct {
	Attempts   int `json:"attempts"`
	Excused    int `json:"excused"`
	Unfinished int `json:"unfinished"`
}

func (d *delivery) counts() counts { return counts{d.e.Attempts, d.e.Excused, d.e.Unfinished} }

// remember takes over the counts in the marker of a message that cannot carry them.
func (d *delivery) remember(l ledger) {
	if d.e.as == Envelope || l == (ledger{}) {
		return
	}
	d.e.Attempts, d.e.Excused, d.e.Unfinished = l.Attempts, l.Excused, l.Unfinished
	d.m.Attempt = l.Attempts + 1
}

// hold renews the claim in its second half. Requests: 2, once per half of its life.
func (o *owner) hold(ctx context.Context, d *delivery) error {
	if !d.holding.TryLock() {
		return nil // it is being renewed
	}
	defer d.holding.Unlock()
	if left := time.Until(d.until); left > o.claimLife()/2 {
		return nil
	}
	row, began := rowOf(d.m.Key), time.Now()
	until := d.at.Add(time.Since(d.received) + o.claimLife()).UTC()
	taken := false
	_, err := tables.Transact(ctx, o.k.table, partitionOf(o.c.path, d.m.Key), func(ctx context.Context, tx *tables.Tx) error {
		var m marker
		there, err := tx.Get(ctx, row, &m)
		if err != nil {
			return err
		}
		if taken = !there || m.Owner != d.m.ID || m.State != stateOwned; taken {
			return optimistic.ErrSkip
		}
		return tx.Merge(row, struct {
			Until time.Time `json:"until"`
		}{until})
	}, &tables.TransactOptions{Sending: optimistic.Sending{Tries: markerTries, TryTimeout: tryTimeout}})
	switch {
	case err != nil && time.Now().After(d.until), taken:
		return ErrOwnershipLost
	case err == nil:
		d.until = began.Add(o.claimLife())
	}
	return nil // there is time to try again
}

// conclude records the outcome of the message, together with others.
func (o *owner) conclude(ctx context.Context, d *delivery, state string) error {
	m := marker{Owner: d.m.ID, State: state, Buried: d.buried || state == statePoisoned}
	m.Expires = o.k.expiry(d.m, m.Buried)
	if state == stateDone && o.kept {
		m.Result = d.m.result
	}
	partition, w := partitionOf(o.c.path, d.m.Key), write{rowOf(d.m.Key), m}
	ctx, cancel := context.WithTimeout(ctx, 2*tryTimeout)
	defer cancel()
	if state == statePoisoned {
		o.c.enter(d, closing)
		return o.poison(ctx, partition, w)
	}
	err := o.c.notes.write(ctx, partition, w, func() { o.c.enter(d, closing) })
	if err != nil && state == stateDone {
		o.c.late.add(partition, w)
	}
	return err
}

// poison records that the message went to the poison queue, on the condition of the marker that it finds: a request that
// is delivered late, or twice, must not take back that a copy was handled meanwhile. Requests: 2.
func (o *owner) poison(ctx context.Context, partition string, w write) error {
	_, err := optimistic.Update(ctx, o.k.entity(partition, w.row), func(_ context.Context, m *marker) error {
		if m.State == stateDone {
			return optimistic.ErrSkip
		}
		*m = w.m
		return nil
	}, &optimistic.UpdateOptions{Create: true, Sending: optimistic.Sending{Tries: markerTries, TryTimeout: tryTimeout, Recreate: true}})
	return o.k.failed(err)
}

func (o *owner) undeleted(context.Context, *delivery) error { return nil } // the marker says that it is done

// forget records in the marker that nobody handles the message. Requests: 1; 2 if another consumer may have claimed it
// since, whose claim stays; none if the message carries all there is to record.
func (o *owner) forget(ctx context.Context, d *delivery, carried bool) error {
	said := d.claimed || d.e.as != Envelope && !d.until.IsZero()
	if carried || !said {
		return nil
	}
	return o.c.free(ctx, d)
}
