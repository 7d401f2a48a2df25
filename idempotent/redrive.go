package idempotent

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore/to"
	"github.com/Azure/azure-sdk-for-go/sdk/storage/azqueue"

	"github.com/azconc/azconc/idempotent/internal/send"
	"github.com/azconc/azconc/pkg/azerr"
	"github.com/azconc/azconc/pkg/ptr"
	"github.com/azconc/azconc/pkg/resource"
	"github.com/azconc/azconc/pkg/retry"
)

// RedriveOptions configures Redrive. The zero value selects the defaults.
type RedriveOptions struct {
	// Max bounds the number of messages that are moved. Defaults to 0: all.
	Max int

	// PerSecond bounds the number of messages that are moved per second. Defaults to 0: no bound.
	PerSecond float64

	// Filter selects which messages to move; the others stay. Defaults to all.
	Filter func(Buried) bool

	// Each is called with every message that was moved. Defaults to none.
	Each func(Buried)

	// Markers are those of the Consumer that poisoned the messages. They hold the reasons of messages that cannot carry
	// them: all but envelopes. Defaults to none: Buried.Reason of those is empty. Requests: 2 more for each of those.
	Markers *Markers

	// Wait is how long to wait for hidden messages, for example those of another Redrive, when no others are left.
	// Defaults to 0: they are counted in RedriveResult.Hidden.
	Wait time.Duration

	_ struct{}
}

// Buried is a message of a poison queue.
type Buried struct {
	Key        string    // identifies duplicates: the sender's id, or the service's if the message has none
	MessageID  string    // the service's, in the poison queue
	Body       []byte    // nil when it is in Blob
	Blob       string    // container/name of the blob in which a ClaimCheck stores the body
	Reason     string    // why it is there; empty if unknown
	Queue      string    // where it came from
	Inserted   time.Time // when it was put into that queue
	Deliveries int       // from that queue
}

// RedriveResult counts the results of Redrive.
type RedriveResult struct {
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
	// redriveHide is how long messages are hidden while they are moved or inspected.
	redriveHide = 2 * time.Minute
	// redriveLeast is how much of that must be left when a message is moved: otherwise it is left to be received again.
	redriveLeast = redriveHide / 2
	// redriveTries is how often each request is sent: for about 80 s if the service hangs.
	redriveTries = 6
	// redriveLook is the interval between checks for hidden messages.
	redriveLook = 5 * time.Second
)

// Redrive moves messages from a poison queue to a queue where they can be handled again, with their ids, as if they had
// never been tried, and with their original time to live; "never" if that is not known and the poison message never
// expires. A message that was not an envelope is restored byte for byte. Each message is first sent and then deleted,
// so a crash or a lost response in between never loses a message, but makes a copy, which can be detected by its id if
// it is an envelope. Markers let a message through whose earlier copy was poison.
//
// Transient faults and lost responses are retried up to 6 times. If a receive's response is lost, its messages stay
// hidden for 2 minutes, and Redrive waits for them. Messages that the filter leaves in place are hidden for up to 2
// minutes as well.
//
// Errors: those of Producer.Send, or why messages cannot be received or deleted; messages moved before the error are
// counted, and another call can move the rest. Requests: 1 per 32 messages, 2 per message that is moved, and 2 to see
// that none is left.
func Redrive(ctx context.Context, from, into *azqueue.QueueClient, opts *RedriveOptions) (RedriveResult, error) {
	var o RedriveOptions
	if opts != nil {
		o = *opts
	}
	switch {
	case from == nil || into == nil:
		return RedriveResult{}, errors.New("no queue client")
	case o.Max < 0:
		return RedriveResult{}, fmt.Errorf("RedriveOptions.Max: %d is negative", o.Max)
	case o.PerSecond < 0:
		return RedriveResult{}, fmt.Errorf("RedriveOptions.PerSecond: %v is negative", o.PerSecond)
	case o.Wait < 0:
		return RedriveResult{}, fmt.Errorf("RedriveOptions.Wait: %v is negative", o.Wait)
	}
	r := redrive{from: from, into: into, path: resource.Path(from.URL()), o: o, left: map[string]bool{}, hiddenSince: map[string]time.Time{}}
	err := r.run(ctx)
	for _, at := range r.hiddenSince {
		if until := at.Add(redriveHide); until.After(r.res.HiddenUntil) && until.After(time.Now()) {
			r.res.HiddenUntil = until
		}
	}
	return r.res, err
}

type redrive struct {
	from, into *azqueue.QueueClient
	path       string // of from
	o          RedriveOptions
	res        RedriveResult

	left        map[string]bool      // messages that the filter has left
	hiddenSince map[string]time.Time // by message, those that were received and not moved; "" for those of a lost response
}

func (r *redrive) count() { r.res.Requests++ }

func (r *redrive) run(ctx context.Context) error {
	began, idle := time.Now(), 0
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
func (r *redrive) receive(ctx context.Context) ([]*azqueue.DequeuedMessage, time.Time, error) {
	n := maxReceive
	if r.o.PerSecond > 0 { // no more than can be moved while they are hidden
		n = max(1, min(n, int(r.o.PerSecond*(redriveHide-redriveLeast).Seconds())))
	}
	if r.o.Max > 0 && r.o.Filter == nil {
		n = min(n, r.o.Max-r.res.Moved)
	}
	var messages []*azqueue.DequeuedMessage
	var began time.Time
	err := send.Resend(ctx, redriveTries, send.TryTimeout, func(ctx context.Context) error {
		r.count()
		began = time.Now()
		resp, err := r.from.DequeueMessages(marked(ctx, unrepeated{}), &azqueue.DequeueMessagesOptions{
			NumberOfMessages: to.Ptr(int32(n)), VisibilityTimeout: to.Ptr(int32(redriveHide / time.Second))})
		if azerr.Classify(err).Ambiguous() {
			r.hiddenSince[""] = time.Now() // it may be applied as late as now
		}
		messages = resp.Messages
		return err
	})
	if err != nil {
		return nil, time.Time{}, fmt.Errorf("receive from %s: %w", r.path, azerr.Clean(err))
	}
	for _, m := range messages {
		r.hiddenSince[ptr.Value(m.MessageID)] = began
	}
	return messages, began.Add(redriveHide), nil
}

// await is called when no message can be received. It reports whether it has waited for hidden ones.
func (r *redrive) await(ctx context.Context, began time.Time) (again bool, err error) {
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
		return true, retry.Sleep(ctx, time.Until(lost.Add(redriveHide)))
	}
	left := r.o.Wait - time.Since(began)
	if left <= 0 {
		return false, nil
	}
	return true, retry.Sleep(ctx, min(redriveLook, left))
}

// hidden counts the messages that nobody can receive, except those left in place. -1 if the service does not return the
// count.
func (r *redrive) hidden(ctx context.Context) (n int, err error) {
	err = send.Resend(ctx, redriveTries, send.TryTimeout, func(ctx context.Context) error {
		r.count()
		resp, err := r.from.GetProperties(ctx, nil)
		n = max(0, int(ptr.Value(resp.ApproximateMessagesCount))-len(r.left))
		return err
	})
	if azerr.Classify(err).Kind == azerr.Unauthorised { // a SAS may allow to process messages, and not this
		return -1, nil
	}
	if err != nil {
		return 0, fmt.Errorf("count the messages of %s: %w", r.path, azerr.Clean(err))
	}
	return n, nil
}
