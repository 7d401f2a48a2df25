package queues

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore/to"
	"github.com/Azure/azure-sdk-for-go/sdk/storage/azqueue/v2"

	"github.com/azconc/azconc/idempotent/internal/send"
	"github.com/azconc/azconc/pkg/azerr"
	"github.com/azconc/azconc/pkg/clock"
	"github.com/azconc/azconc/pkg/ptr"
	"github.com/azconc/azconc/pkg/retry"
	"github.com/azconc/azconc/pkg/wire"
)

// Receipt is the right to a message. The pop receipt changes with every use, so uses take turns: only one request at a
// time is in progress, since the next one needs its response.
//
//	held     the pop receipt is known, and nobody else can receive the message before the deadline
//	unsure   an update was applied, but its response, and with it the new pop receipt, was lost: nobody else can receive
//	         the message before the deadline, but it can be neither renewed nor deleted
//	lost     another consumer has received it, or it is gone
//
// The deadline counts from just before the request that hid the message was sent, so it is never later than the service's.
type Receipt struct {
	queue *Queue
	id    string
	text  string // sent with an update if the client has no Policy

	Forbidden func(error) // called when an update is not permitted; may be nil

	typed   bool // the pop receipt comes from a user, and may be none
	special bool // the text is not known: an update needs Policy

	turn chan struct{} // holds a token while no request is in progress

	mu      sync.Mutex // guards the fields below; never held during a request
	pop     string
	until   clock.Instant
	visible time.Time // as last reported by the service
	unsure  bool
	lost    bool
	adopted bool // the pop receipt is from a delivery that came after the latest request was sent
}

// Receipt returns the receipt of a message whose text is known. It holds the message when Adopt has been called.
func (q *Queue) Receipt(id, text string) *Receipt {
	r := &Receipt{queue: q, id: id, text: text, turn: make(chan struct{}, 1)}
	r.turn <- struct{}{}
	return r
}

// ReceiptOf returns the receipt of a message whose text is not known, and which is taken to be hidden until the given time. typed
// says that a user has typed the pop receipt: the service may refuse it because it is none.
func (q *Queue) ReceiptOf(id, pop string, until clock.Instant, typed bool) *Receipt {
	r := q.Receipt(id, "")
	r.typed, r.special = typed, true
	r.Adopt(pop, until)
	return r
}

// use is a request that needs the pop receipt.
type use struct {
	op      string
	budget  retry.Budget
	over    func(tries int) bool // reports whether it is too late for another try
	send    func(ctx context.Context, pop string) error
	refused func(out azerr.Outcome) error // what it means that the service does not know the message, or not under this receipt
	ended   func(err error)               // called before the next use; may be nil
	check   func() error                  // after a response: why the request cannot have an effect; may be nil

	began clock.Instant // of the latest try
	open  clock.Instant // of the first try whose outcome is unknown; zero if there is none
	last  error         // of the last response
}

// use sends a request, when no other is in progress, until its outcome is known or no try is left.
func (r *Receipt) use(ctx context.Context, u *use) error {
	select {
	case <-r.turn:
	case <-ctx.Done():
		return context.Cause(ctx)
	}
	defer func() { r.turn <- struct{}{} }()
	r.mu.Lock()
	pop, lost, unsure := r.pop, r.lost, r.unsure
	r.adopted = r.adopted && (lost || unsure)
	r.mu.Unlock()
	switch {
	case lost:
		return ErrLost
	case unsure:
		return ErrReceiptUnknown
	}
	again := wire.Again{
		Try:    send.TryTimeout,
		Budget: u.budget,
		Pause: func(ctx context.Context, loop *retry.Loop, retryAfter time.Duration) error {
			if u.over(loop.Tries()) {
				return retry.ErrExhausted
			}
			wait := u.budget.Backoff.In(ctx).Wait(loop.Tries() - 1)
			if until, _ := r.Deadline(); until.Left() > 0 { // an outage can end just before the message is lost
				wait = min(wait, max(until.Left()/2, 20*time.Millisecond))
			}
			return loop.NextAfter(ctx, max(wait, retryAfter))
		},
		Note: func(_ context.Context, f wire.Failed) { u.failed(f.Outcome) }, // also where ctx has ended, and Judge is not called
		Judge: func(_ context.Context, f wire.Failed) (wire.Verdict, error) {
			if u.check != nil && f.Outcome.Status != 0 {
				if err := u.check(); err != nil {
					return wire.Final, err
				}
			}
			if f.Outcome.Kind != azerr.Lost && f.Outcome.Kind != azerr.NotFound && (r.typed && u.open.IsZero() || !Invalid(f.Outcome)) {
				return f.Usual()
			}
			if renewed, ok := r.Renewed(); ok {
				pop, u.open = renewed, clock.Instant{}
				return wire.AtOnce, f.Err
			}
			return wire.Final, u.refused(f.Outcome)
		},
	}
	sent, err := r.queue.wire.Send(ctx, u.op, again, func(ctx context.Context) error {
		u.began = clock.Now()
		return u.send(ctx, pop)
	})
	u.last = sent.Last
	if passed := (wire.Failed{Outcome: azerr.Classify(sent.Last)}); err != nil && sent.Last != nil && passed.Passes() {
		err = sent.Last // it says what the service may have done; the cause of a context that ended does not
	}
	if u.ended != nil {
		u.ended(err)
	}
	if r.Forbidden != nil && u.check != nil && azerr.Classify(err).Kind == azerr.Unauthorised {
		r.Forbidden(fmt.Errorf("%s: %w", u.op, err))
	}
	return err
}

// Invalid reports that the service does not take the pop receipt for one. Accounts respond like that to a stale one of a message
// that exists, as well as to one that was mistyped.
func Invalid(out azerr.Outcome) bool { return out.Code == "InvalidQueryParameterValue" }

// failed records that a try may have been applied.
func (u *use) failed(out azerr.Outcome) {
	if out.Ambiguous() && u.open.IsZero() {
		u.open = u.began
	}
}

// Renewed returns the current pop receipt if the message was delivered to this process again after the latest request
// was sent.
func (r *Receipt) Renewed() (pop string, ok bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	ok, r.adopted = r.adopted, false
	return r.pop, ok
}

// become records the effect of a request, unless a later delivery has replaced the pop receipt.
func (r *Receipt) become(change func()) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if !r.adopted {
		change()
	}
}

// Deadline returns until when nobody else can receive the message, and whether it is held at all.
func (r *Receipt) Deadline() (until clock.Instant, ours bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.until, !r.lost
}

// hidden reports whether nobody else can receive the message yet.
func (r *Receipt) hidden() bool {
	until, _ := r.Deadline()
	return until.Left() > 0
}

// Extend hides the message for d, starting now, and keeps its text. Nil means that it is hidden.
func (r *Receipt) Extend(ctx context.Context, d time.Duration) error {
	return r.update(marked(ctx, bodiless{}), d, nil)
}

// Rewrite hides the message for d and replaces its text.
func (r *Receipt) Rewrite(ctx context.Context, d time.Duration, text string) error {
	return r.update(ctx, d, &text)
}

func (r *Receipt) update(ctx context.Context, d time.Duration, text *string) error {
	var resp azqueue.UpdateMessageResponse
	var special *substitution
	if r.special && text == nil {
		special = &substitution{}
		ctx = context.WithValue(ctx, substitute{}, special)
	}
	u := &use{
		op:     "Update Message",
		budget: retry.Budget{Attempts: -1, Elapsed: -1, Backoff: retry.Backoff{Base: min(max(d/30, 200*time.Millisecond), time.Second), Cap: 8 * time.Second}},
		over:   func(int) bool { return !r.hidden() },
	}
	u.send = func(ctx context.Context, pop string) (err error) {
		content := r.text
		if text != nil {
			content = *text
		}
		if special != nil {
			special.pop, pop = pop, standIn
		}
		resp, err = r.queue.SDK.UpdateMessage(ctx, r.id, pop, content, &azqueue.UpdateMessageOptions{VisibilityTimeout: to.Ptr(int32(d / time.Second))})
		return err
	}
	u.check = func() error {
		if special != nil && !special.made {
			return ErrNoPolicy
		}
		return nil
	}
	u.refused = func(out azerr.Outcome) error {
		if out.Kind != azerr.NotFound && !u.open.IsZero() && r.hidden() {
			// The first request has invalidated the receipt: nobody else could receive the message before the deadline.
			r.become(func() { r.unsure, r.until = true, u.open.Add(d) })
			return ErrReceiptUnknown
		}
		r.become(func() { r.lost = true })
		return ErrLost
	}
	u.ended = func(err error) {
		if err != nil {
			if out := azerr.Classify(u.last); !u.open.IsZero() && (out.Transient() || out.Ambiguous()) {
				r.become(func() { r.unsure = true }) // until the old deadline at least
			}
			return
		}
		if text != nil {
			r.text = *text // a client without Policy sends it with every update
		}
		r.become(func() {
			r.pop, r.until, r.visible = ptr.Value(resp.PopReceipt), u.began.Add(d), ptr.Value(resp.TimeNextVisible)
		})
	}
	return r.use(ctx, u)
}

// A deletion is given up after so many tries, and not before so long a time while the message is hidden.
const (
	deleteTries = 5
	deleteFor   = 5 * time.Second
)

// Delete deletes the message. Nil means that it is gone. If the service does not know the message under this receipt,
// it was deleted, by a request whose response was lost or that an intermediary has repeated; but only until the deadline:
// after that, another consumer may have received it.
func (r *Receipt) Delete(ctx context.Context) error {
	began := clock.Now()
	return r.use(ctx, &use{
		op:     "Delete Message",
		budget: retry.Budget{Attempts: -1, Elapsed: -1, Backoff: retry.Backoff{Base: 500 * time.Millisecond, Cap: 4 * time.Second}},
		over: func(tries int) bool {
			if r.hidden() {
				return tries >= deleteTries && began.Passed() > deleteFor
			}
			return tries >= deleteTries || began.Passed() >= send.TryTimeout
		},
		send: func(ctx context.Context, pop string) error {
			_, err := r.queue.SDK.DeleteMessage(ctx, r.id, pop, nil)
			return err
		},
		refused: func(out azerr.Outcome) error {
			if out.Kind == azerr.Lost && r.hidden() {
				return nil
			}
			r.become(func() { r.lost = true })
			return ErrLost
		},
	})
}

// Adopt takes over a new receipt after the service has delivered the message to this process again.
func (r *Receipt) Adopt(pop string, until clock.Instant) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.pop, r.until, r.unsure, r.lost, r.adopted = pop, until, false, false, true
}

// Known returns the pop receipt, and when the service has last said that the message becomes visible. known is false if the
// response to the latest update was lost.
func (r *Receipt) Known() (pop string, visible time.Time, known bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.pop, r.visible, !r.unsure
}

// ErrNoPolicy reports that an update was not made because the client lacks Policy.
var ErrNoPolicy = errors.New("the queue client lacks idempotent.Policy, without which the message's text would be lost")
