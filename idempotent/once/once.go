// Package once runs a function once per key, across all processes, and replays its result to later callers.
//
//	keys, err := once.New(locks, table, nil)
//	done, err := keys.Do(ctx, "order-17", request, func(ctx context.Context, h *pessimistic.Hold) ([]byte, error) {
//		return charge(ctx, request, h.Fence())
//	})
//
// A key has a named lock, so one process at a time works on it, and an entity with the result.
package once

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"net/url"
	"strings"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/data/aztables"

	"github.com/azconc/azconc/idempotent/internal/markers"
	"github.com/azconc/azconc/idempotent/internal/send"
	"github.com/azconc/azconc/optimistic"
	"github.com/azconc/azconc/optimistic/tables"
	"github.com/azconc/azconc/pessimistic"
	"github.com/azconc/azconc/pkg/observe"
	"github.com/azconc/azconc/pkg/ptr"
)

var (
	// ErrInProgress reports that another process or goroutine is working on the key right now. The error in the chain
	// is a *pessimistic.HeldError, which says which one, and since when.
	ErrInProgress = errors.New("in progress")

	// ErrMismatch reports that the key was used before with another payload: nothing was run, and nothing is replayed.
	ErrMismatch = errors.New("the key was used with another payload")

	// ErrDone reports that the key has a result already. The error in the chain is a *DoneError, which has it.
	ErrDone = errors.New("it is done")

	// ErrAttempts reports that the key was begun as often as Options.Attempts allows, and has no result: nothing was run.
	ErrAttempts = errors.New("its attempts are used up")
)

// Once runs a function once per key, across all processes, and replays its result to later callers.
//
// A named lock guards each key, so that one process at a time works on it, and the next can take over as soon as the
// lease of a crashed one has expired. The result is stored in a table when the function has returned nil, and the lock is
// deleted then, at no request; until then the key is free to be tried again. So the function completes once as far as can be
// known; if its process crashes after the effect and before the result is stored, it runs again. Pass its context and the fence
// on to whatever it calls.
//
//	state     lock    result    Do
//	new       free    none      runs fn
//	running   held    none      ErrInProgress
//	failed    free    none      runs fn again
//	done      none    stored    replays it
//
// A Once is safe for concurrent use.
type Once struct {
	locks     *pessimistic.Locker
	table     *markers.Table
	partition string
	attempts  int
	keep      time.Duration
	lock      func(key string) string
	sweeper   *markers.Sweep
}

// New returns a Once whose locks are those of the Locker, under "once/", and whose results are in a table, in a
// partition named after the Locker's container and prefix: a key locked elsewhere is a different key. It sends no
// request: the table is created before a function first runs.
//
// The first use of a key creates a lock, whose fence takes up to a second; see pessimistic.LockerOptions.QuickFirst for
// when that can be avoided.
func New(locks *pessimistic.Locker, table *aztables.Client, opts *Options) (*Once, error) {
	if locks == nil || table == nil {
		return nil, errors.New("once: no Locker or no table client")
	}
	o := ptr.Value(opts)
	if o.Keep != 0 && o.Keep < leastKeep {
		return nil, fmt.Errorf("once: Keep of %v: it must be at least %v; 0 is for ever", o.Keep, leastKeep)
	}
	if o.Lock == nil {
		o.Lock = func(key string) string { return key }
	}
	partition := markers.RowUnder("once-", "once-!", strings.TrimSuffix(locks.Path(""), "/"))
	t := markers.NewTable(table, o.Hooks)
	return &Once{locks: locks, table: t, partition: partition, attempts: o.Attempts, keep: o.Keep, lock: o.Lock, sweeper: &markers.Sweep{Table: t}}, nil
}

// Options configures a Once. The zero value selects the defaults.
type Options struct {
	// Attempts is how often a key is begun, over all processes, until it has a result: one that fails and one that dies count. After
	// that, Do and Begin return ErrAttempts until the key is forgotten. It costs 2 requests for each time. A negative value means no bound,
	// which is the default.
	Attempts int

	// Keep is how long the results that this Once stores are kept at least, an hour or more. A day later they are deleted in passing by
	// those who use a Once with a Keep: after every 250th key on average, up to 1000 results for at most 21 requests. A key runs again
	// only when its result is deleted, and is replayed until then: no clock alone decides that work is done again. What was stored without
	// it is kept. Defaults to 0: for ever.
	Keep time.Duration

	// Lock returns the name of the lock of a key, below "once/". Of the keys that share a lock, one at a time is worked on. A lock
	// with the name of its key is deleted when the result is stored, others are kept. Defaults to the key itself.
	Lock func(key string) string

	// Hooks receive a span for each call of Do, Begin, Finish, Look, Forget, List and GC, and of the collection, and one for each of their requests to the table;
	// those to the lock go to the Hooks of the Locker. Defaults to none.
	Hooks observe.Hooks

	_ struct{}
}

// Result is the result of a key.
type Result struct {
	Value    []byte
	Replayed bool      // it was stored before
	At       time.Time // when it was stored, by the clock of the process that stored it
	Note     string    // Run.Note of the process that stored it
}

// entity is the stored entity.
type entity struct {
	Payload string    `json:"payload"` // its hash
	Result  []byte    `json:"result"`
	At      time.Time `json:"at"`
	Fence   int64     `json:"fence"`
	Note    string    `json:"note,omitempty"`
	Key     string    `json:"key,omitempty"` // if the row key is its hash
	Expires time.Time `json:"expires,omitzero"`
}

func (e entity) stored(replayed bool) Result {
	return Result{Value: e.Result, Replayed: replayed, At: e.At, Note: e.Note}
}

const (
	maxKey = 200
	// maxResult is the maximum size of a property (REST: "Understanding the Table service data model", 64 KiB).
	maxResult = 64 << 10
)

// Do runs fn for key, of 1 to 200 bytes, unless that was done before, and returns the result. payload is the operation that
// the key stands for, such as a request: its hash is stored, and a different payload under the same key is refused.
//
// Errors: those of Begin and of Run.Do. Requests: 1 to replay; otherwise 8, and 7 for a key that was tried before; 1 more if
// the table does not exist.
func (o *Once) Do(ctx context.Context, key string, payload []byte, fn func(ctx context.Context, h *pessimistic.Hold) ([]byte, error)) (out Result, err error) {
	ctx, end := o.span(ctx, "once.Do", key)
	defer func() { end(err) }()
	run, err := o.Begin(ctx, key, payload)
	if done, ok := errors.AsType[*DoneError](err); ok {
		return done.Result, nil
	}
	if err != nil {
		return Result{}, err
	}
	return run.Do(ctx, fn)
}

// DoneError reports that a key has a result: nothing is left to be done.
type DoneError struct {
	Key    string
	Result Result
}

func (e *DoneError) Error() string {
	return fmt.Sprintf("%s was done at %s", e.Key, e.Result.At.Format(time.RFC3339))
}

// Unwrap returns ErrDone.
func (*DoneError) Unwrap() error { return ErrDone }

// Begin is the first half of Do, for work that is not a function. Errors: *DoneError with the stored result, if the key was done before;
// ErrInProgress; ErrMismatch; ErrAttempts; and the service's error. After an error nothing is
// held. Requests: 1 if the key is done; otherwise 6, and 5 for a key that was tried before; 2 more with Options.Attempts.
func (o *Once) Begin(ctx context.Context, key string, payload []byte) (run *Run, err error) {
	ctx, end := o.span(ctx, "once.Begin", key)
	defer func() {
		if errors.Is(err, ErrDone) {
			end(nil)
			return
		}
		end(err)
	}()
	if err := checkKey(key); err != nil {
		return nil, err
	}
	sum := sha256.Sum256(payload)
	hash := hex.EncodeToString(sum[:])
	out, done, err := o.look(ctx, key, hash)
	if markers.Missing(err) { // before fn runs, so that its result can be stored
		err = o.table.Create(ctx)
	}
	if err != nil {
		return nil, err
	}
	if done {
		return nil, &DoneError{key, out}
	}
	h, err := o.locks.TryLock(ctx, "once/"+url.PathEscape(o.lock(key)))
	if errors.Is(err, pessimistic.ErrHeld) {
		return nil, fmt.Errorf("%w: %w", ErrInProgress, err)
	}
	if err != nil {
		return nil, err
	}
	held := &Run{hold: h, Keep: o.keep, once: o, key: key, hash: hash}
	defer func() {
		if run == nil { // also if a hook ends the goroutine
			_ = held.Release(ctx)
		}
	}()
	out, held.stored, err = o.look(h.Context(), key, hash) // done between our look and our lock
	if err != nil {
		return nil, err
	}
	if held.stored {
		return nil, &DoneError{key, out}
	}
	if err := o.attempt(h.Context(), key); err != nil {
		return nil, err
	}
	return held, nil
}

// Look returns the result stored for a key, and whether there is one. Requests: 1.
func (o *Once) Look(ctx context.Context, key string) (out Result, done bool, err error) {
	ctx, end := o.span(ctx, "once.Look", key)
	defer func() { end(err) }()
	if err := checkKey(key); err != nil {
		return Result{}, false, err
	}
	out, done, err = o.look(ctx, key, "")
	if markers.Missing(err) {
		err = nil
	}
	return out, done, err
}

// Forget deletes the result stored for a key, as if the key had never been used; the next caller runs the function
// again. A call that is working on the key is not disturbed. Forget reports whether there was a result. Requests: 1, and 1 more
// with Options.Attempts.
func (o *Once) Forget(ctx context.Context, key string) (forgotten bool, err error) {
	ctx, end := o.span(ctx, "once.Forget", key)
	defer func() { end(err) }()
	if err := checkKey(key); err != nil {
		return false, err
	}
	if err := o.forgetAttempts(ctx, key); err != nil {
		return false, err
	}
	_, err = optimistic.Delete(ctx, o.at(key), optimistic.State{}, &optimistic.WriteOptions{SendOptions: o.sending()})
	if errors.Is(err, optimistic.ErrNotFound) || markers.Missing(err) {
		return false, nil
	}
	return err == nil, err
}

// span begins the span of an operation.
func (o *Once) span(ctx context.Context, name, key string) (context.Context, func(error)) {
	return o.table.Hooks.Start(ctx, observe.Span{Name: name, Resource: strings.TrimSuffix(o.table.Path+"/"+key, "/")})
}

func checkKey(key string) error {
	if key == "" || len(key) > maxKey {
		return fmt.Errorf("once: key of %d bytes: must be 1 to %d", len(key), maxKey)
	}
	return nil
}

// look returns the stored result, for any payload if hash is empty.
func (o *Once) look(ctx context.Context, key, hash string) (Result, bool, error) {
	e, done, err := markers.Find(ctx, o.at(key), o.sending())
	switch {
	case !done || err != nil:
		return Result{}, false, err
	case hash != "" && e.Payload != hash:
		return Result{}, false, fmt.Errorf("%w: %s", ErrMismatch, key)
	}
	return e.stored(true), true, nil
}

// sending configures the requests to the table.
func (o *Once) sending() optimistic.SendOptions {
	return o.table.Sending(optimistic.SendOptions{TryTimeout: send.TryTimeout, Recreate: true})
}

func (o *Once) at(key string) tables.Entity[entity] {
	return tables.NewEntity[entity](o.table.Client, o.partition, row(key))
}

// row returns the row key of a key: the key, escaped, or its hash if that is too long.
func row(key string) string { return markers.RowUnder("", hashed, key) }

// hashed is how the row key of a hash begins. An escaped key has none.
const hashed = "!"
