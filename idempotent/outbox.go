package idempotent

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/google/uuid"

	"github.com/azconc/azconc/idempotent/internal/format"
	"github.com/azconc/azconc/idempotent/internal/markers"
	"github.com/azconc/azconc/idempotent/internal/queues"
	"github.com/azconc/azconc/idempotent/internal/send"
	"github.com/azconc/azconc/optimistic"
	"github.com/azconc/azconc/optimistic/tables"
	"github.com/azconc/azconc/pkg/azerr"
)

// Send adds a message that follows from the one that Apply handles to its transaction: tx, and ctx, are those that Apply
// passes to change. to is a name in InboxOptions.Outbox. The message is stored in the partition with the effect, and
// Apply sends it once both are written, and before it returns, in the order of the calls. If the process ends in
// between, Apply of the next delivery, or of a copy, sends what is left. So a message follows at least once from each
// effect, and all that are sent for one call share an id: a Consumer with Markers, or an Inbox, at the other end handles
// one of them.
//
// m.ID defaults to a UUID made from the handled message's id, and a number. m.TTL and m.Delay count from when it is sent.
//
// Errors: ErrTooLarge for a body that does not fit into a message, since an outbox takes no ClaimCheck: store the body in
// a blob before Apply, and send the blob's name. A transaction holds 100 entities and 4 MiB, of which each message that
// follows is one entity of up to 66 KiB; Apply refuses a larger one before anything is written.
func (i *Inbox) Send(ctx context.Context, tx *tables.Tx, to string, m Outgoing) error {
	if i.outbox[to] == nil {
		return unknownProducer(to)
	}
	box, ok := ctx.Value(outboxKey{}).(*outbox)
	if !ok || box.tx != tx {
		return errors.New("Inbox.Send: called outside of Apply: pass on the context and the Tx that Apply passes to its change")
	}
	if m.ID == "" {
		// The service's id of the handled message: those of its sender may be the same in two accounts.
		id := uuid.NewSHA1(uuid.Nil, []byte(box.m.Queue+"/"+box.m.ID+"/"+i.table.Path+"/"+box.partition))
		m.ID = fmt.Sprintf("%s.%d", id, len(box.sends))
	}
	if err := m.check(Envelope); err != nil {
		return err
	}
	text, err := format.Message{ID: m.ID, Sent: time.Now().UTC(), Headers: m.Headers, Body: m.Body}.EncodeNew(format.Envelope)
	if err != nil {
		return fmt.Errorf("Inbox.Send: %w: store the body in a blob before Apply, and send its name", err)
	}
	f := following{To: to, ID: m.ID, Text: []byte(text), Delay: int(m.Delay / time.Second), TTL: int(m.TTL / time.Second), Expires: box.expires}
	if m.TTL < 0 {
		f.TTL = -1
	}
	f.row = fmt.Sprintf("%s%02d", outboxRows(box.m), len(box.sends))
	box.sends = append(box.sends, f)
	return tx.Insert(f.row, f)
}

func unknownProducer(name string) error {
	return fmt.Errorf("InboxOptions.Outbox: it has no Producer %q", name)
}

// following is a message that follows from another one, as it is stored until it is sent.
type following struct {
	row     string
	To      string    `json:"to"` // a name in InboxOptions.Outbox
	ID      string    `json:"id"`
	Text    []byte    `json:"text"`    // of the message in the queue
	Delay   int       `json:"delay"`   // in seconds, like TTL
	TTL     int       `json:"ttl"`     // 0 is the service's default
	Expires time.Time `json:"expires"` // when GC deletes it: with the marker
}

// outbox is what one run of a change sends.
type outbox struct {
	m         *Message
	partition string
	tx        *tables.Tx
	expires   time.Time
	sends     []following
}

// outboxKey is the key of the *outbox in the context of a change.
type outboxKey struct{}

// outboxRows is the beginning of the rows of the messages that follow from one: the same for each delivery and copy of it. No
// marker's row begins like this.
func outboxRows(m *Message) string {
	return inboxPrefix + markers.QueueName(m.Queue) + ".!" + uuid.NewSHA1(uuid.Nil, []byte(m.Key)).String() + "."
}

// applying is how a transaction of Apply went.
type applying struct {
	optimistic.Result
	box *outbox // of the last run of the change
	own error   // of that run
}

// conclude sends what follows from a message that was applied, now or before, and returns the error of Apply: nil only if it is sent.
func (i *Inbox) conclude(ctx context.Context, m *Message, partition string, a applying, err error) error {
	var left []following
	switch {
	case err == nil && !a.Changed: // the change returned ErrSkip
		return nil
	case err == nil && a.Ambiguous+a.Resolved == 0:
		left = a.box.sends
	case err == nil, // the run that was applied need not be the last
		errors.Is(err, ErrAlreadyApplied),
		a.own != nil && ctx.Err() == nil && !errors.As(err, new(*outage)): // the change may fail because its effect is there
		var failed error
		if left, failed = i.unsent(ctx, m, partition); failed != nil {
			return failed
		}
	}
	if len(left) == 0 {
		return err
	}
	if failed := i.follow(ctx, partition, left); failed != nil {
		return failed
	}
	if err != nil {
		return alreadyApplied(m)
	}
	return nil
}

// unsent returns the messages that follow from one and are stored. Requests: 1.
func (i *Inbox) unsent(ctx context.Context, m *Message, partition string) (left []following, err error) {
	rows := outboxRows(m)
	filter := "PartitionKey eq " + markers.Quoted(partition) + " and RowKey ge " + markers.Quoted(rows) + " and RowKey lt " + markers.Quoted(rows+":") // follows the digits
	err = markers.Query(ctx, i.table, filter, "RowKey,to,id,text,delay,ttl", func(raw []byte) error {
		var key struct{ RowKey string }
		var f following
		if err := errors.Join(json.Unmarshal(raw, &key), json.Unmarshal(raw, &f)); err != nil {
			return fmt.Errorf("a stored message is not readable: %w", err)
		}
		f.row = key.RowKey
		left = append(left, f)
		return nil
	})
	return left, i.failed(ctx, err, nil)
}

// follow sends what follows from a message that was applied, and forgets it. What cannot be deleted stays until GC: then a copy
// of the message sends it again, under the same id. Requests: 1 for each, and 1.
func (i *Inbox) follow(ctx context.Context, partition string, left []following) error {
	for _, f := range left {
		p := i.outbox[f.To]
		if p == nil {
			return unknownProducer(f.To)
		}
		m := Outgoing{ID: f.ID, Delay: time.Duration(f.Delay) * time.Second, TTL: time.Duration(f.TTL) * time.Second}
		sending, end := p.span(ctx, m)
		_, err := p.post(sending, m, string(f.Text))
		if end(err); err != nil {
			return p.failed(ctx, err)
		}
	}
	if len(left) > 0 {
		_, _ = tables.Transact(ctx, i.table.Client, partition, func(_ context.Context, tx *tables.Tx) error {
			for _, f := range left {
				if err := tx.Delete(f.row); err != nil {
					return err
				}
			}
			return nil
		}, &tables.TransactOptions{Attempts: 1, SendOptions: i.table.Sending(optimistic.SendOptions{Tries: inboxTries, TryTimeout: send.TryTimeout})})
	}
	return nil
}

// failed marks an error of the queue as not the fault of the message from which another one follows.
func (p *Producer) failed(ctx context.Context, err error) error {
	out := azerr.Classify(err)
	if ctx.Err() != nil || !out.Transient() && !out.Ambiguous() && out.Kind != azerr.Unauthorised && !queues.Absent(err) {
		return err
	}
	return &outage{err: err, probe: func(ctx context.Context) error {
		_, err := p.queue.Count(ctx, 1)
		if azerr.Classify(err).Kind == azerr.Unauthorised {
			return nil // the right to send does not include this one
		}
		return err
	}}
}
