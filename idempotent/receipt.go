package idempotent

import (
	"context"
	"sync"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore/to"
	"github.com/Azure/azure-sdk-for-go/sdk/storage/azqueue"

	"github.com/azconc/azconc/idempotent/internal/send"
	"github.com/azconc/azconc/pkg/azerr"
	"github.com/azconc/azconc/pkg/ptr"
	"github.com/azconc/azconc/pkg/retry"
	"github.com/azconc/azconc/pkg/wire"
)

// receipt is the right to a message. The pop receipt changes with every use, so uses take turns: only one request at a
// time is in progress, since the next one needs its response.
//
//	held     the pop receipt is known, and nobody else can receive the message before the deadline
//	unsure   an update was applied, but its response, and with it the new pop receipt, was lost: nobody else can receive
//	         the message before the deadline, but it can be neither renewed nor deleted
//	lost     another consumer has received it, or it is gone
//
// The deadline counts from just before the request that hid the message was sent, on the monotonic clock, so it is
// never later than the service's.
type receipt struct {
	queue *azqueue.QueueClient
	count func()
	id    string
	text  string // sent with an update if the client has no Policy

	turn chan struct{} // holds a token while no request is in progress

	mu      sync.Mutex // guards the fields below; never held during a request
	pop     string
	until   time.Time
	visible time.Time // as last reported by the service
	unsure  bool
	lost    bool
	adopted bool // the pop receipt is from a delivery that came after the latest request was sent
}

// newReceipt returns a receipt whose turn is free.
func newReceipt(queue *azqueue.QueueClient, id, text string) *receipt {
	r := &receipt{queue: queue, id: id, text: text, turn: make(chan struct{}, 1)}
	r.turn <- struct{}{}
	return r
}

// use is a request that needs the pop receipt.
type use struct {
	op      string
	budget  retry.Budget
	over    func() bool // reports whether it is too late for another try
	send    func(ctx context.Context, pop string) error
	refused func(lost bool) error // what it means that the service does not know the message, or not under this receipt
	ended   func(err error)       // called before the next use; may be nil

	began time.Time // of the latest try
	open  time.Time // of the first try whose outcome is unknown; zero if there is none
	last  error     // of the last response
}

// use sends a request, when no other is in progress, until its outcome is known or no try is left.
func (r *receipt) use(ctx context.Context, u *use) error {
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
		return ErrOwnershipLost
	case unsure:
		return ErrReceiptUnknown
	}
	again := wire.Again{
		Try:    send.TryTimeout,
		Budget: u.budget,
		Pause: func(ctx context.Context, loop *retry.Loop, retryAfter time.Duration) error {
			if u.over() {
				return retry.ErrExhausted
			}
			return loop.Next(ctx, retryAfter)
		},
		Judge: func(_ context.Context, f wire.Failed) (wire.Verdict, error) {
			u.failed(f.Outcome)
			if f.Outcome.Kind != azerr.Lost && f.Outcome.Kind != azerr.NotFound {
				return f.Usual()
			}
			if renewed, ok := r.renewed(); ok {
				pop, u.open = renewed, time.Time{}
				return wire.AtOnce, f.Err
			}
			return wire.Final, u.refused(f.Outcome.Kind == azerr.Lost)
		},
	}
	sent, err := wire.Wire{Count: r.count}.Send(ctx, u.op, again, func(ctx context.Context) error {
		u.began = time.Now()
		err := u.send(ctx, pop)
		if err != nil {
			u.failed(azerr.Classify(err)) // Judge is not called after the end of ctx
		}
		return err
	})
	u.last = sent.Last
	if passed := (wire.Failed{Outcome: azerr.Classify(sent.Last)}); err != nil && sent.Last != nil && passed.Passes() {
		err = sent.Last // it says what the service may have done; the cause of a context that ended does not
	}
	if u.ended != nil {
		u.ended(err)
	}
	return err
}

// failed records that a try may have been applied.
func (u *use) failed(out azerr.Outcome) {
	if out.Ambiguous() && u.open.IsZero() {
		u.open = u.began
	}
}

// renewed returns the current pop receipt if the message was delivered to this process again after the latest request
// was sent.
func (r *receipt) renewed() (pop string, ok bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	ok, r.adopted = r.adopted, false
	return r.pop, ok
}

// become records the effect of a request, unless a later delivery has replaced the pop receipt.
func (r *receipt) become(change func()) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if !r.adopted {
		change()
	}
}

// deadline returns until when nobody else can receive the message, and whether it is held at all.
func (r *receipt) deadline() (until time.Time, ours bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.until, !r.lost
}

// extend hides the message for d, starting now, and keeps its text. Nil means that it is hidden.
func (r *receipt) extend(ctx context.Context, d time.Duration) error {
	return r.update(marked(ctx, bodiless{}), d, nil)
}

// rewrite hides the message for d and replaces its text.
func (r *receipt) rewrite(ctx context.Context, d time.Duration, text string) error {
	return r.update(ctx, d, &text)
}

func (r *receipt) update(ctx context.Context, d time.Duration, text *string) error {
	var resp azqueue.UpdateMessageResponse
	u := &use{
		op:     "update",
		budget: retry.Budget{Attempts: -1, Elapsed: -1, Backoff: retry.Backoff{Base: min(max(d/30, 200*time.Millisecond), time.Second), Cap: 8 * time.Second}},
		over:   func() bool { until, _ := r.deadline(); return !time.Now().Before(until) },
	}
	u.send = func(ctx context.Context, pop string) (err error) {
		content := r.text
		if text != nil {
			content = *text
		}
		resp, err = r.queue.UpdateMessage(ctx, r.id, pop, content, &azqueue.UpdateMessageOptions{VisibilityTimeout: to.Ptr(int32(d / time.Second))})
		return err
	}
	u.refused = func(lost bool) error {
		if lost && !u.open.IsZero() {
			// The first request has invalidated the receipt. Nobody else can have the message: it was hidden all the time.
			r.become(func() { r.unsure, r.until = true, u.open.Add(d) })
			return ErrReceiptUnknown
		}
		r.become(func() { r.lost = true })
		return ErrOwnershipLost
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

// adopt takes over a new receipt after the service has delivered the message to this process again.
func (r *receipt) adopt(pop string, until time.Time) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.pop, r.until, r.unsure, r.lost, r.adopted = pop, until, false, false, true
}
