package optimistic

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/azconc/azconc/optimistic/internal/protocol"
	"github.com/azconc/azconc/optimistic/internal/sealed"
	"github.com/azconc/azconc/pkg/observe"
	"github.com/azconc/azconc/pkg/ptr"
)

// DocumentOptions tunes a Document. The zero value is the default.
type DocumentOptions struct {
	// Update tunes the writes. OperationID, DryRun and conditions on ETags and dates apply to single changes, so they are
	// refused.
	Update UpdateOptions

	// MaxAge is how long a value is written over without reading it again. The ETag notices every change of the content,
	// however old the value is. It does not notice index tags that others have set since the value was read, and a write
	// removes them; see Document. Negative means that every fold reads first. Defaults to 1 minute.
	MaxAge time.Duration

	_ struct{}
}

// maxFold bounds how many changes share one write.
const maxFold = 256

// Document is an open resource. It remembers the value and the version that it last saw, so an update without
// contention costs a single request. It folds concurrent updates into one write.
//
// Each change in a fold has its own outcome. The changes run one after the other, each on the result of the previous
// one. A change that fails is dropped and gets its own error, and the others continue. The write applies all of them or
// none, so they share its outcome.
//
// Index tags are not part of a blob's ETag, and a write of the content replaces them. A Document writes back the tags that
// it read, and a changed value of one of them is a conflict; but a tag that others have added since the last read, at most
// MaxAge ago, is lost.
//
// A change, or a hook, must not use its own Document: it would wait for itself. With the context that it was given, it gets an
// error that says so.
//
// A Document is safe for concurrent use. It starts no goroutines: one of the waiting callers does the work for all. It
// does not need to be closed.
type Document[T any] struct {
	name     Target[T]
	target   sealed.Target[T]
	cloner   sealed.Cloner[T]
	o        UpdateOptions
	settings protocol.Settings
	maxAge   time.Duration

	idle chan struct{} // has a token while no caller is folding

	mu    sync.Mutex // guards queue
	queue []*entry[T]

	cached *sealed.Version[T] // guarded by idle; nil if nothing is known
	readAt time.Time          // guarded by idle; when cached, or the version that it was written over, was read
}

// entry is one caller's change in the queue.
type entry[T any] struct {
	change func(context.Context, *T) error
	ctx    context.Context
	fold   *folder[T]    // set when the entry has left the queue; guarded by Document.mu
	done   chan struct{} // closed when the fields below are set
	res    Result
	err    error
	panic  any // the value that the change panicked with, to be raised again in its own call
}

// NewDocument opens target. It sends nothing; the first Update or Read reads. The targets of which the last writer wins
// cannot be opened.
func NewDocument[T any](target Target[T], opts *DocumentOptions) (*Document[T], error) {
	t, err := open("document", target)
	if err != nil {
		return nil, err
	}
	o := ptr.Value(opts)
	cloner, ok := t.(sealed.Cloner[T])
	if !ok {
		return nil, fmt.Errorf("document %s: a Document needs a target with a version of its own", t.Resource())
	}
	if o.Update.OperationID != "" || o.Update.DryRun || !o.Update.Conditions.carried() {
		return nil, errors.New("DocumentOptions.Update: OperationID, DryRun and conditions on ETags and dates are for a single change: use Update")
	}
	u, err := o.Update.validated()
	if err != nil {
		return nil, err
	}
	s, err := u.settings()
	if err != nil {
		return nil, err
	}
	d := &Document[T]{name: target, target: t, cloner: cloner, o: u, settings: s, maxAge: cmp.Or(o.MaxAge, time.Minute), idle: make(chan struct{}, 1)}
	d.idle <- struct{}{}
	return d, nil
}

// Update does what the function Update does, with the same promise and the same errors. The counts in Result are those
// of the whole fold; Result.Folded is how many changes shared it.
//
// If ctx ends before the write is sent, the change is not applied, and the error is the context's cause. If it ends while
// the write is under way, Update waits for the outcome for at most Grace, and then returns ErrOutcomeUnknown; Resolve
// gives the outcome once the other callers know it.
//
// Cost: 1 request without contention, 2 if nothing is remembered yet. A fold of any size costs at most 2 without
// conflicts.
func (d *Document[T]) Update(ctx context.Context, change func(ctx context.Context, value *T) error) (_ Result, err error) {
	if err := sealed.NotNil("update", "change", change); err != nil {
		return Result{}, err
	}
	ctx, err = d.enter(ctx, "update")
	if err != nil {
		return Result{}, err
	}
	ctx, end := d.o.Hooks.Start(ctx, observe.Span{Name: "optimistic.Update", Resource: d.target.Resource()})
	defer func() { end(err) }()
	e := &entry[T]{change: change, ctx: ctx, done: make(chan struct{})}
	d.mu.Lock()
	d.queue = append(d.queue, e)
	d.mu.Unlock()
	for {
		select {
		case <-e.done:
			return e.outcome()
		case <-d.idle:
			// Another caller may have folded our entry. Then there is nothing left to do for it, and the next caller
			// folds.
			select {
			case <-e.done:
				d.idle <- struct{}{}
			default:
				d.work()
			}
		case <-ctx.Done():
			if d.withdraw(e) || !e.settled() && e.fold.leave(e) {
				return Result{}, fmt.Errorf("update %s: %w", d.target.Resource(), context.Cause(ctx))
			}
			return e.await(ctx)
		}
	}
}

// Read reads the value and the version, and remembers both. The value belongs to the caller. Errors are those of the
// function Read. Cost: 1 request (2 for a blob with index tags).
func (d *Document[T]) Read(ctx context.Context) (*Version[T], error) {
	ctx, err := d.enter(ctx, "read")
	if err != nil {
		return nil, err
	}
	select {
	case <-d.idle:
		defer func() { d.idle <- struct{}{} }()
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
	v, err := Read(ctx, d.name, &ReadOptions{SendOptions: d.o.SendOptions})
	d.cached = nil
	if err != nil {
		return nil, err
	}
	kept := v.base()
	if kept.Value, err = d.cloner.Clone(v.Value); err != nil {
		return nil, err
	}
	d.cached, d.readAt = kept, time.Now()
	return v, nil
}

// within is the key of a Document in the contexts of its changes and of its hooks.
type within struct{ document any }

// enter returns the context in which d works for a call. A call from a change or a hook of d would wait for the fold in which
// that runs, and so for itself.
func (d *Document[T]) enter(ctx context.Context, op string) (context.Context, error) {
	if ctx.Value(within{d}) != nil {
		return nil, fmt.Errorf("%s %s: a change or a hook uses its own Document, and would wait for itself: use the value that it was given", op, d.target.Resource())
	}
	return context.WithValue(ctx, within{d}, true), nil
}

func (e *entry[T]) outcome() (Result, error) {
	if e.panic != nil {
		panic(e.panic)
	}
	return e.res, e.err
}

// withdraw removes e from the queue and reports whether it was still there.
func (d *Document[T]) withdraw(e *entry[T]) bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	for i, q := range d.queue {
		if q == e {
			d.queue = append(d.queue[:i], d.queue[i+1:]...)
			return true
		}
	}
	return false
}

// work folds the entries in the queue once, and gives the token back.
func (d *Document[T]) work() {
	defer func() { d.idle <- struct{}{} }()
	call := protocol.NewCall("update", d.target.Resource(), d.settings)
	f := &folder[T]{Document: d, Loop: protocol.Loop{Call: call, Place: sealed.Place(d.target), Budget: d.o.budget(), Narrow: d.o.Conditions.narrow()}}
	f.Next, f.Refused = f.next, f.refused
	d.mu.Lock()
	n := min(len(d.queue), maxFold)
	f.batch = append([]*entry[T](nil), d.queue[:n]...)
	d.queue = append([]*entry[T](nil), d.queue[n:]...)
	for _, e := range f.batch {
		e.fold = f
	}
	d.mu.Unlock()
	if n == 0 {
		return
	}
	ctx, cancel := foldContext(f.batch)
	defer cancel()
	err := errors.New("the change of another caller in the same fold ended the goroutine")
	defer func() { // also when a change calls runtime.Goexit, as a failing test does
		res := Result(f.Finish())
		res.Folded = n
		for _, e := range f.batch {
			e.settle(res, err)
		}
	}()
	err = f.run(ctx)
}

// settle gives e the fold's result, or its own error.
func (e *entry[T]) settle(res Result, err error) {
	e.res = res
	own := e.err
	if own == nil {
		e.err = err
	}
	if errors.Is(own, ErrSkip) {
		e.err = nil
	}
	if own != nil || err != nil {
		e.res.Changed, e.res.Created, e.res.WriteID = false, false, ""
	}
	close(e.done)
}
