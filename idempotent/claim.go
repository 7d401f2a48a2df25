package idempotent

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/azconc/azconc/idempotent/internal/format"
	"github.com/azconc/azconc/idempotent/internal/markers"
	"github.com/azconc/azconc/idempotent/internal/send"
	"github.com/azconc/azconc/optimistic"
	"github.com/azconc/azconc/optimistic/tables"
	"github.com/azconc/azconc/pkg/azerr"
	"github.com/azconc/azconc/pkg/clock"
	"github.com/azconc/azconc/pkg/observe"
)

// maxResult is the maximum size of a property (REST: "Understanding the Table service data model", 64 KiB).
const maxResult = 64 << 10

// claim is a delivery's claim of its key, which its marker records: until it ends, no other message with the key is
// handled. A nil claim is that of a delivery which needs none.
type claim struct {
	o *owner
	d *delivery

	renewing sync.Mutex    // held while the claim is renewed
	until    clock.Instant // when it ends
}

// remember takes over the counts in the marker of a message that cannot carry them.
func (d *delivery) remember(counts format.Counts) {
	if d.carries || counts == (format.Counts{}) {
		return
	}
	d.e.Counts, d.m.Attempt = counts, counts.Attempts+1
}

// transact changes the marker.
func (k *claim) transact(ctx context.Context, change func(context.Context, *tables.Tx) error) error {
	_, err := tables.Transact(ctx, k.o.k.table.Client, k.d.partition, change, &tables.TransactOptions{SendOptions: k.o.k.table.Rewriting()})
	return err
}

// hold renews the claim in its second half, after the message was renewed and until it has to be renewed again. ErrOwnershipLost means
// that it is another's, or could not be renewed and ends before the message's hiding does, which is when hold is called next at the
// latest. Requests: 2, once per half of its life.
func (k *claim) hold(ctx context.Context) error {
	if k == nil || !k.renewing.TryLock() {
		return nil // it is being renewed
	}
	defer k.renewing.Unlock()
	o, d := k.o, k.d
	until := o.until(d, d.at.Add(d.received.Passed()))
	local := d.received.Add(until.Sub(d.at))
	if k.until.Left() > o.life/2 || local.Since(k.until) <= 0 {
		return nil
	}
	hidden, _ := d.receipt.Deadline()
	ctx, cancel := context.WithTimeout(ctx, hidden.Left()-d.c.o.Visibility/3)
	defer cancel()
	gone := false
	err := k.transact(ctx, func(ctx context.Context, tx *tables.Tx) error {
		var m markers.Marker
		there, err := tx.Get(ctx, d.row, &m)
		if err != nil {
			return err
		}
		if gone = !there || m.Owner != d.m.ID || m.State != markers.Owned; gone {
			return optimistic.ErrSkip
		}
		return tx.Merge(d.row, struct {
			Until time.Time `json:"until"`
		}{until})
	})
	hidden, _ = d.receipt.Deadline()
	switch {
	case err != nil && hidden.Since(k.until) > 0, gone:
		return ErrOwnershipLost
	case err == nil:
		k.until = local
	}
	return nil // there is time to try again
}

// count stores the counts of a message that cannot carry them. Requests: 1.
func (k *claim) count(ctx context.Context, n format.Counts) error {
	type counts struct { // zeros too
		Attempts   int `json:"attempts"`
		Excused    int `json:"excused"`
		Unfinished int `json:"unfinished"`
	}
	return k.o.k.failed(k.transact(ctx, func(_ context.Context, tx *tables.Tx) error { return tx.Merge(k.d.row, counts(n)) }))
}

// conclude records the outcome of a message, together with others. A handled message whose marker cannot be written now is
// recorded by flush.
func (o *owner) conclude(ctx context.Context, d *delivery, as conclusion) error {
	m := markers.Marker{Owner: d.m.ID, State: markers.Done, Buried: d.buried || as == wasBuried}
	m.Expires = o.k.expiry(d.m, m.Buried)
	ctx, cancel := context.WithTimeout(ctx, 2*send.TryTimeout)
	defer cancel()
	if as == wasBuried {
		m.State = markers.Poisoned
		return o.poison(ctx, d, m)
	}
	if o.kept {
		if len(d.m.result) > maxResult {
			d.report(observe.Failed, fmt.Errorf("the result was not stored: it is longer than 64 KiB (%d bytes): store it in a blob and set the blob's name as the result", len(d.m.result)))
			d.m.result = nil
		}
		m.Result = d.m.result
		d.result, d.replays = m.Result, true
	}
	err := o.k.failed(o.notes.Write(ctx, d.partition, markers.Write{Row: d.row, Marker: m}, func() { o.c.move(d, closing) }))
	if err != nil && azerr.Classify(err).Kind != azerr.BadInput {
		o.notes.Later(d.partition, markers.Write{Row: d.row, Marker: m})
	}
	return err
}

// poison records that the message went to the poison queue, on the condition of the marker that it finds: a request that
// is delivered late, or twice, must not take back that a copy was handled meanwhile. Requests: 2.
func (o *owner) poison(ctx context.Context, d *delivery, poisoned markers.Marker) error {
	sending := o.k.table.Rewriting()
	sending.Recreate = true
	_, err := optimistic.Update(ctx, o.k.table.Entity(d.partition, d.row), func(_ context.Context, m *markers.Marker) error {
		if m.State == markers.Done {
			return optimistic.ErrSkip
		}
		*m = poisoned
		return nil
	}, &optimistic.UpdateOptions{Create: true, SendOptions: sending})
	return o.k.failed(err)
}

// forget stores the counts of a message that cannot carry them, unless another consumer may have received it since. Requests: 1.
func (o *owner) forget(ctx context.Context, d *delivery) error {
	until, ours := d.receipt.Deadline()
	if d.claim == nil || d.carries || !ours || until.Left() <= 0 {
		return nil
	}
	err := d.claim.count(ctx, d.e.Counts)
	if errors.Is(err, optimistic.ErrNotFound) {
		return nil
	}
	return err
}

func (o *owner) flush(ctx context.Context) error { return o.k.failed(o.notes.Flush(ctx)) }
