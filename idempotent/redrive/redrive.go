// Package redrive moves messages from a poison queue back to where they can be handled again.
//
//	moved, err := redrive.Run(ctx, poison, orders, &redrive.Options{PerSecond: 5})
package redrive

import (
	"context"
	"errors"
	"fmt"
	"math"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/storage/azqueue/v2"

	"github.com/azconc/azconc/idempotent/internal/queues"
	"github.com/azconc/azconc/idempotent/internal/send"
	"github.com/azconc/azconc/pkg/azerr"
	"github.com/azconc/azconc/pkg/clock"
	"github.com/azconc/azconc/pkg/observe"
	"github.com/azconc/azconc/pkg/ptr"
	"github.com/azconc/azconc/pkg/retry"
	"github.com/azconc/azconc/pkg/wire"
)

// Options configures Run. The zero value selects the defaults.
type Options struct {
	// Max bounds the number of messages that are moved; a negative value means no bound, which is the default.
	Max int

	// PerSecond bounds the number of messages that are moved per second; less than one a day counts as that. Defaults to 0: no bound.
	PerSecond float64

	// Filter selects which messages to move; the others stay. Defaults to all.
	Filter func(Message) bool

	// Each is called with every message that was moved. Defaults to none.
	Each func(Message)

	// Wait is how long to wait for hidden messages, for example those of another Run, when no others are left.
	// Defaults to 0: they are counted in Result.Hidden.
	Wait time.Duration

	// Hooks receive a span "redrive.Run", and one for each of its requests to the queues. Defaults to none.
	Hooks observe.Hooks

	_ struct{}
}

// Message is a message of a poison queue. One that is not an envelope says neither why it is there nor where it came from.
type Message struct {
	Key        string    // identifies duplicates: the sender's id, or the service's if the message has none
	MessageID  string    // the service's, in the poison queue
	Body       []byte    // nil when it is in Blob
	Blob       string    // container/name of the blob in which a ClaimCheck stores the body
	Reason     string    // why it is there; empty if unknown
	Queue      string    // where it came from
	Inserted   time.Time // when it was put into that queue
	Deliveries int       // from that queue
}

// Result counts the results of Run.
type Result struct {
	Moved int
	Left  int // left in place by the filter

	// Hidden is how many messages, besides those in Left, cannot be received at the moment; the service's count may be
	// too high for a while. -1 if the service does not return it.
	Hidden int

	// HiddenUntil is when the messages that this call has hidden but not moved can be received again. Zero if there are
	// none.
	HiddenUntil time.Time

	Requests int
}

const (
	// hide is how long messages are hidden while they are moved or inspected; with Options.PerSecond a bit longer, see redrive.hide.
	hide = 2 * time.Minute
	// least is how much of that must be left when a message is moved: otherwise it is left to be received again.
	least = hide / 2
	// tries is how often each request is sent: for about 80 s if the service hangs.
	tries = 6
	// look is the interval between checks for hidden messages.
	look = 5 * time.Second
)

// Run moves messages from a poison queue to a queue where they can be handled again, with their ids, as if they had
// never been tried, and with their original time to live; "never" if that is not known and the poison message never
// expires, as for all that are not envelopes. A body in a blob is read by Consumers of the queue that it was sent to, and of others with
// idempotent.ClaimCheckOptions.Queues. A message that was not an envelope is restored byte for byte. Each message is first
// sent and then deleted, so a crash or a lost response in between never loses a message, but makes a copy, which can be detected by
// its id if it is an envelope. Markers let a message through whose earlier copy was poison.
//
// Transient faults and lost responses are retried up to 6 times. If a receive's response is lost, its messages stay
// hidden for 2 minutes, and Run waits for them. Messages that the filter leaves in place are hidden for up to 2
// minutes as well.
//
// An error says why a message cannot be received, sent or deleted. It is azerr.ErrOutcomeUnknown if a copy may have been sent, which
// is handled twice unless it is detected by its id. Messages moved before the error are counted, and another call can move the rest.
// A process can call Run several times at once. Requests: 1 per 32 messages, 2 per message that is moved, and 2 to see that none is
// left.
func Run(ctx context.Context, from, into *azqueue.QueueClient, opts *Options) (res Result, err error) {
	o := ptr.Value(opts)
	switch {
	case from == nil || into == nil:
		return Result{}, errors.New("no queue client")
	case o.PerSecond < 0, math.IsNaN(o.PerSecond):
		return Result{}, fmt.Errorf("redrive: Options.PerSecond: %v is not a number from 0 on", o.PerSecond)
	case o.Wait < 0:
		return Result{}, fmt.Errorf("redrive: Options.Wait: %v is negative", o.Wait)
	}
	o.Max = max(o.Max, 0)
	r := redrive{o: o, hide: hide, left: map[string]bool{}, hiddenSince: map[string]clock.Instant{}}
	if o.PerSecond > 0 {
		r.interval = time.Duration(min(1/o.PerSecond, 24*60*60) * float64(time.Second))
		r.hide += r.interval.Truncate(time.Second) + time.Second
	}
	r.from, r.into = queues.New(from, o.Hooks, r.count), queues.New(into, o.Hooks, r.count)
	ctx, end := o.Hooks.Start(ctx, observe.Span{Name: "redrive.Run", Resource: r.from.Path})
	defer func() { end(err) }()
	err = r.run(ctx)
	for _, at := range r.hiddenSince {
		if until := at.Add(r.hide); until.Left() > 0 && until.Wall().After(r.res.HiddenUntil) {
			r.res.HiddenUntil = until.Wall()
		}
	}
	return r.res, err
}

type redrive struct {
	from, into *queues.Queue
	o          Options
	res        Result
	interval   time.Duration // between two messages that are moved
	hide       time.Duration // of the messages of a receive, which includes the interval before the first of them

	left        map[string]bool          // messages that the filter has left
	hiddenSince map[string]clock.Instant // by message, those that were received and not moved; "" for those of a lost response
}

func (r *redrive) count() { r.res.Requests++ }

func (r *redrive) run(ctx context.Context) error {
	began, idle := clock.Now(), 0
	for r.o.Max == 0 || r.res.Moved < r.o.Max {
		messages, until, err := r.receive(ctx)
		if err != nil {
			return err
		}
		if len(messages) == 0 {
			again, err := r.await(ctx, began)
			if err != nil || !again {
				return err
			}
			continue
		}
		fresh := false
		for _, m := range messages {
			seen, err := r.one(ctx, m, until)
			if err != nil {
				return err
			}
			fresh = fresh || !seen
		}
		// Messages that were left in place are received again when their time has passed. Once as many of them as there
		// are have come in a row, there are no others.
		if idle += len(messages); fresh {
			idle = 0
		}
		if idle > len(r.left) {
			return nil
		}
	}
	return nil
}

// receive hides some messages, and returns until when.
func (r *redrive) receive(ctx context.Context) ([]*azqueue.DequeuedMessage, clock.Instant, error) {
	n := queues.MaxReceive
	if r.o.PerSecond > 0 { // no more than can be moved while they are hidden
		n = max(1, min(n, int(r.o.PerSecond*(hide-least).Seconds())))
	}
	if r.o.Max > 0 && r.o.Filter == nil {
		n = min(n, r.o.Max-r.res.Moved)
	}
	messages, until, sent, err := r.from.ReceiveAgain(ctx, n, r.hide, wire.Again{Try: send.TryTimeout, Budget: send.Budget(tries)})
	if sent.Ambiguous > 0 {
		r.hiddenSince[""] = clock.Now() // it may be applied as late as now
	}
	if err != nil {
		return nil, clock.Instant{}, fmt.Errorf("receive from %s: %w", r.from.Path, azerr.Clean(err))
	}
	for _, m := range messages {
		r.hiddenSince[ptr.Value(m.MessageID)] = until.Add(-r.hide)
	}
	return messages, until, nil
}

// await is called when no message can be received. It reports whether it has waited for hidden ones.
func (r *redrive) await(ctx context.Context, began clock.Instant) (again bool, err error) {
	r.res.Hidden, err = r.hidden(ctx)
	if err != nil {
		return false, err
	}
	if r.res.Hidden == 0 {
		delete(r.hiddenSince, "") // the lost response contained no messages
		return false, nil
	}
	if lost, ok := r.hiddenSince[""]; ok {
		delete(r.hiddenSince, "")
		return true, r.wait(ctx, "the messages of a lost response", lost.Add(r.hide).Left())
	}
	left := r.o.Wait - began.Passed()
	if left <= 0 {
		return false, nil
	}
	return true, r.wait(ctx, "hidden messages", min(look, left))
}

func (r *redrive) wait(ctx context.Context, what string, d time.Duration) error {
	if err := retry.Sleep(ctx, d); err != nil {
		return fmt.Errorf("wait for %s of %s: %w", what, r.from.Path, err)
	}
	return nil
}

// hidden counts the messages that nobody can receive, except those left in place. -1 if the service does not return the
// count.
func (r *redrive) hidden(ctx context.Context) (n int, err error) {
	n, err = r.from.Count(ctx, tries)
	switch {
	case err == nil && n < 0, azerr.Classify(err).Kind == azerr.Unauthorised: // a SAS may allow to process messages, and not this
		return -1, nil
	case err != nil:
		return 0, fmt.Errorf("count the messages of %s: %w", r.from.Path, azerr.Clean(err))
	}
	return max(0, n-len(r.left)), nil
}
