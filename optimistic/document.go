package optimistic

import (
	"context"
	"errors"
	"fmt"
	"sync"

	"github.com/azconc/azconc/pkg/retry"
)

// Cacheable is what a Document needs of its target beyond Target: it remembers what it wrote, and folding keeps what
// succeeded when a later change fails.
type Cacheable[T any] interface {
	// Clone returns a copy of value that shares no memory with it.
	Clone(value T) (T, error)
	// Equal tells whether both values are stored alike.
	Equal(x, y T) bool
	// Written returns what a Read would carry (Version.Carry) after value was written over base.
	Written(base *Version[T], value T) (any, error)
}

// DocumentOptions tunes a Document. The zero value is the default.
type DocumentOptions struct {
	// Update tunes the writes. OperationID, DryRun and Conditions.IfMatch belong to single changes and are refused.
	Update UpdateOptions

	// MaxFold bounds how many changes share one write. Defaults to 256.
	MaxFold int

	_ struct{}
}

// Document is an open resource: it remembers the value and the version it last saw, so that an update without
// contention is a single request, and it folds updates that are waiting at the same time into one write.
//
// Folding keeps every change's own outcome: changes run one after the other, each on the value its predecessor left; a
// change that fails is left out, with its own error, and the others go on. The write either applies all of the rest or
// none, so they share its outcome.
//
// A Document is safe for concurrent use and starts no goroutines of its own: whoever waits does the work for all. It
// needs no closing.
type Document[T any] struct {
	target Target[T]
	cache  Cacheable[T]
	o      UpdateOptions
	fold   int

	turn chan struct{} // holds a token while nobody is folding

	mu    sync.Mutex // guards queue
	queue []*entry[T]

	cached *Version[T] // guarded by turn; nil when nothing is known
}

// entry is one caller's change in the queue.
type entry[T any] struct {
	change func(context.Context, *T) error
	ctx    context.Context
	done   chan struct{} // closed when the rest is set
	res    Result
	err    error
	panic  any // what the change panicked with, to be raised again where it was asked for
}

// NewDocument opens target. It sends nothing; the first use reads.
func NewDocument[T any](target Target[T], opts *DocumentOptions) (*Document[T], error) {
	var o DocumentOptions
	if opts != nil {
		o = *opts
	}
	cache, ok := target.(Cacheable[T])
	if !ok {
		return nil, fmt.Errorf("document %s: the target does not implement Cacheable", target.Resource())
	}
	if o.Update.OperationID != "" || o.Update.DryRun || o.Update.Conditions.IfMatch != "" {
		return nil, errors.New("DocumentOptions.Update: OperationID, DryRun and Conditions.IfMatch belong to a single change; use Update for it")
	}
	if o.MaxFold < 0 {
		return nil, fmt.Errorf("DocumentOptions.MaxFold: %d is negative; 0 means the default of 256", o.MaxFold)
	}
	u, err := o.Update.withDefaults()
	if err != nil {
		return nil, err
	}
	if o.MaxFold == 0 {
		o.MaxFold = 256
	}
	d := &Document[T]{target: target, cache: cache, o: u, fold: o.MaxFold, turn: make(chan struct{}, 1)}
	d.turn <- struct{}{}
	return d, nil
}

// Update is the package's Update on this document: the same promise, the same errors. Result counts belong to the whole
// fold; Result.Folded tells how many changes shared it.
//
// When ctx ends before the change's turn has come, nothing is applied. When it ends while the write is under way, Update
// waits for the outcome for at most Grace and is ErrOutcomeUnknown after that.
//
// Cost: 1 request without contention, 2 when nothing is remembered yet; a fold of any size at most 2 without conflicts.
func (d *Document[T]) Update(ctx context.Context, change func(ctx context.Context, value *T) error) (Result, error) {
	e := &entry[T]{change: change, ctx: ctx, done: make(chan struct{})}
	d.mu.Lock()
	d.queue = append(d.queue, e)
	d.mu.Unlock()
	for {
		select {
		case <-e.done:
			return e.outcome()
		case <-d.turn:
			// Our entry may have been folded by the one whose turn it was; then there is nothing left to do for it,
			// and the queue is the next one's business.
			select {
			case <-e.done:
				d.turn <- struct{}{}
			default:
				d.work()
			}
		case <-ctx.Done():
			if d.withdraw(e) {
				return Result{}, fmt.Errorf("update %s: %w", d.target.Resource(), context.Cause(ctx))
			}
			return d.await(ctx, e)
		}
	}
}

// Read returns the value as it is now: one request. The value belongs to the caller.
func (d *Document[T]) Read(ctx context.Context) (*Version[T], error) {
	select {
	case <-d.turn:
		defer func() { d.turn <- struct{}{} }()
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
	v, err := Read(ctx, d.target, &ReadOptions{Sending: d.o.Sending})
	d.cached = nil
	if err != nil {
		return nil, err
	}
	kept := *v
	if kept.Value, err = d.cache.Clone(v.Value); err != nil {
		return nil, err
	}
	d.cached = &kept
	return v, nil
}

func (e *entry[T]) outcome() (Result, error) {
	if e.panic != nil {
		panic(e.panic)
	}
	return e.res, e.err
}

// withdraw takes e out of the queue and tells whether it was still there.
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

// await waits for the outcome of an entry that is being folded, when its own context has ended.
func (d *Document[T]) await(ctx context.Context, e *entry[T]) (Result, error) {
	detached, cancel := retry.Detached(ctx, d.o.Grace)
	defer cancel()
	select {
	case <-e.done:
		return e.outcome()
	case <-detached.Done():
		return Result{}, &UnknownError{
			Op: "update", Resource: d.target.Resource(), Why: "the caller stopped waiting while the shared write was under way",
			Err: context.Cause(ctx), attempt: write{look: d.target.Look},
		}
	}
}

// work folds what is in the queue, once, and passes the turn on.
func (d *Document[T]) work() {
	defer func() { d.turn <- struct{}{} }()
	d.mu.Lock()
	n := min(len(d.queue), d.fold)
	batch := append([]*entry[T](nil), d.queue[:n]...)
	d.queue = append([]*entry[T](nil), d.queue[n:]...)
	d.mu.Unlock()
	if n == 0 {
		return
	}
	ctx, cancel := foldContext(batch)
	defer cancel()
	f := folder[T]{Document: d, batch: batch, call: newCall("update", d.target.Resource(), d.o.Sending, d.target)}
	err := errors.New("the change of another caller in the same fold ended the goroutine")
	defer func() { // also when a change calls runtime.Goexit, as a failing test does
		res := f.finish()
		res.Folded = n
		for _, e := range batch {
			e.settle(res, err)
		}
	}()
	err = f.run(ctx)
}

// settle gives e its share of the fold's result: all of it, or its own error.
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
