package queues

import (
	"context"
	"time"

	"github.com/azconc/azconc/idempotent/internal/send"
	"github.com/azconc/azconc/pkg/azerr"
	"github.com/azconc/azconc/pkg/retry"
	"github.com/azconc/azconc/pkg/wire"
)

// Delete deletes a message, as again says.
func (q *Queue) Delete(ctx context.Context, id, pop string, again wire.Again) (wire.Sent, error) {
	return q.wire.Send(ctx, "Delete Message", again, func(ctx context.Context) error {
		_, err := q.SDK.DeleteMessage(ctx, id, pop, nil)
		return err
	})
}

const deleteTries = 5

// Delete deletes the message. Nil means that it is gone. If the service does not know the message under this receipt,
// it was deleted, by a request whose response was lost or that an intermediary has repeated; but only until the deadline:
// after that, another consumer may have received it.
func (r *Receipt) Delete(ctx context.Context) error {
	last := time.Now().Add(send.TryTimeout)
	return r.use(ctx, &use{
		op:     "Delete Message",
		budget: retry.Budget{Attempts: deleteTries, Elapsed: -1, Backoff: retry.Backoff{Base: 500 * time.Millisecond, Cap: 4 * time.Second}},
		over: func() bool {
			until, _ := r.Deadline()
			return !time.Now().Before(until) && !time.Now().Before(last)
		},
		send: func(ctx context.Context, pop string) error {
			_, err := r.queue.SDK.DeleteMessage(ctx, r.id, pop, nil)
			return err
		},
		refused: func(out azerr.Outcome) error {
			if until, _ := r.Deadline(); out.Kind == azerr.Lost && time.Now().Before(until) {
				return nil
			}
			r.become(func() { r.lost = true })
			return ErrLost
		},
	})
}
