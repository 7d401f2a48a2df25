package idempotent

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

	"github.com/azconc/azconc/optimistic"
	"github.com/azconc/azconc/pessimistic"
)

var (
	// ErrInProgress says that another is at work on the key at this moment. The error in the chain is a
	// *pessimistic.HeldError, which tells who and since when.
	ErrInProgress = errors.New("in progress")

	// ErrMismatch says that the key was used before with another payload: nothing was run, and nothing is replayed.
	ErrMismatch = errors.New("the key was used with another payload")
)

// Once runs a function once per key, over all processes, and replays its result to whoever asks again.
//
// A key is worked on under a named lock, so that one process at a time does, and the next can take over as soon as the lease
// of one that has died has run out. The result is stored in a table when the function has returned nil; until then the key is
// free to be tried again. So the function runs once to its end as far as anybody can tell; if its process dies after the
// effect and before the result is stored, it runs again. Hand its context and the fence on to what it does.
//
//	state     lock    result    Do
//	new       free    none      runs fn
//	running   held    none      ErrInProgress
//	failed    free    none      runs fn again
//	done      any     stored    replays it
//
// A Once is safe for concurrent use.
type Once struct {
	locks     *pessimistic.Locker
	table     *aztables.Client
	partition string
}

// NewOnce returns a Once whose locks are the Locker's, under "once/", and whose results are in a table, in a partition that is
// named for the Locker's container and prefix: a key that is locked elsewhere is another key. It sends no request.
//
// The first use of a key creates a lock, whose fence takes up to a second: see pessimistic.LockerOptions.QuickFirst for
// when that can be saved.
func NewOnce(locks *pessimistic.Locker, table *aztables.Client) (*Once, error) {
	if locks == nil || table == nil {
		return nil, errors.New("once: no Locker, or no table client")
	}
	return &Once{locks: locks, table: table, partition: "once-" + url.PathEscape(strings.TrimSuffix(locks.Path(""), "/"))}, nil
}

// Outcome is what Do has come to.
type Outcome struct {
	Result   []byte
	Replayed bool      // it was stored before
	At       time.Time // when it was stored, by the clock of who did
}

// onceResult is the entity.
type onceResult struct {
	Payload string    `json:"payload"` // its hash
	Result  []byte    `json:"result"`
	At      time.Time `json:"at"`
	Fence   int64     `json:"fence"`
}

const (
	maxKey = 200
	// maxResult is what a property holds (REST: "Understanding the Table service data model", 64 KiB).
	maxResult = 64 << 10
)

// Do runs fn for key unless it was done before, and returns its result. payload is what the key stands for, such as the
// request: its hash is stored, and another one under the same key is refused.
//
// fn's context ends when the lock is lost. Errors: fn's own, after which nothing is stored; ErrInProgress; ErrMismatch;
// *pessimistic.LostError when the lock was lost meanwhile, whatever fn returned; and what the service said.
//
// Requests: 1 to replay; otherwise 8, and 7 for a key that was tried before.
func (o *Once) Do(ctx context.Context, key string, payload []byte, fn func(ctx context.Context, h *pessimistic.Held) ([]byte, error)) (Outcome, error) {
	a, out, err := o.Begin(ctx, key, payload)
	if a == nil {
		return out, err
	}
	defer func() { _ = a.Release(ctx) }() // also after a panic; what is stored is stored, whatever became of the lock since
	result, err := fn(a.Context(), a.Held)
	if lost := context.Cause(a.Context()); errors.Is(lost, pessimistic.ErrLost) {
		return Outcome{}, lost
	}
	if err != nil {
		return Outcome{}, err
	}
	return a.Finish(a.Context(), result)
}

// Attempt is a key in our hands: the lock of it is held, and nothing is stored. It has to be released, by Release.
type Attempt struct {
	*pessimistic.Held
	once      *Once
	key, hash string
}

// Begin is the first half of Do, for work that is no function. If the key was done before, there is no Attempt, and Outcome
// is what is stored. Errors: ErrInProgress; ErrMismatch; and what the service said. After an error nothing is held.
// Requests: 1 to replay; otherwise 6, and 5 for a key that was tried before.
func (o *Once) Begin(ctx context.Context, key string, payload []byte) (*Attempt, Outcome, error) {
	if err := checkKey(key); err != nil {
		return nil, Outcome{}, err
	}
	sum := sha256.Sum256(payload)
	hash := hex.EncodeToString(sum[:])
	if out, done, err := o.look(ctx, key, hash); done || err != nil {
		return nil, out, err
	}
	h, err := o.locks.TryLock(ctx, "once/"+url.PathEscape(key))
	if errors.Is(err, pessimistic.ErrHeld) {
		return nil, Outcome{}, fmt.Errorf("%w: %w", ErrInProgress, err)
	}
	if err != nil {
		return nil, Outcome{}, err
	}
	if out, done, err := o.look(h.Context(), key, hash); done || err != nil { // done between our look and our lock
		_ = h.Release(ctx)
		return nil, out, err
	}
	return &Attempt{Held: h, once: o, key: key, hash: hash}, Outcome{}, nil
}

// Finish stores the result, of up to 64 KiB. Errors: *pessimistic.LostError when the lock is lost, and what the service said:
// after those nothing is stored as far as is known, and the key is free. Requests: 1.
func (a *Attempt) Finish(ctx context.Context, result []byte) (Outcome, error) {
	if len(result) > maxResult {
		return Outcome{}, fmt.Errorf("once: the result has %d bytes, more than the %d that can be stored: store it in a blob and return its name", len(result), maxResult)
	}
	if err := a.Guard(ctx); err != nil {
		return Outcome{}, err
	}
	at := time.Now().UTC()
	_, err := optimistic.Create(ctx, a.once.entity(a.key), onceResult{Payload: a.hash, Result: result, At: at, Fence: int64(a.Fence())}, &optimistic.WriteOptions{Sending: optimistic.Sending{Recreate: true}})
	if errors.Is(err, optimistic.ErrExists) {
		// Another has finished it while we believed to be alone: his result is the one that stays.
		out, _, err := a.once.look(context.WithoutCancel(ctx), a.key, a.hash)
		return out, err
	}
	if err != nil {
		return Outcome{}, err
	}
	return Outcome{Result: result, At: at}, nil
}

// Look returns what is stored for a key, and whether there is anything. Requests: 1.
func (o *Once) Look(ctx context.Context, key string) (Outcome, bool, error) {
	if err := checkKey(key); err != nil {
		return Outcome{}, false, err
	}
	return o.look(ctx, key, "")
}

// Forget throws away what is stored for a key, which then is as if it had never been used; whoever asks again runs it again.
// Somebody who is at work on it is not disturbed. It returns whether there was anything. Requests: 1.
func (o *Once) Forget(ctx context.Context, key string) (bool, error) {
	if err := checkKey(key); err != nil {
		return false, err
	}
	_, err := optimistic.Delete(ctx, o.entity(key), optimistic.State{}, nil)
	if errors.Is(err, optimistic.ErrNotFound) {
		return false, nil
	}
	return err == nil, err
}

func checkKey(key string) error {
	if key == "" || len(key) > maxKey {
		return fmt.Errorf("once: key of %d bytes, not 1 to %d", len(key), maxKey)
	}
	return nil
}

// look replays what is stored, for any payload if hash is empty.
func (o *Once) look(ctx context.Context, key, hash string) (Outcome, bool, error) {
	v, err := optimistic.Read(ctx, o.entity(key), nil)
	switch {
	case errors.Is(err, optimistic.ErrNotFound):
		return Outcome{}, false, nil
	case err != nil:
		return Outcome{}, false, err
	case hash != "" && v.Value.Payload != hash:
		return Outcome{}, false, fmt.Errorf("%w: %s", ErrMismatch, key)
	}
	return Outcome{Result: v.Value.Result, Replayed: true, At: v.Value.At}, true, nil
}

func (o *Once) entity(key string) optimistic.Entity[onceResult] {
	return optimistic.TableEntity[onceResult](o.table, o.partition, url.PathEscape(key))
}
