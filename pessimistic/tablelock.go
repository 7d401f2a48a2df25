package pessimistic

import (
	"context"
	"errors"
	"net/url"
)

// TableLock is a lock on a table, or on one partition of it. Tables have no leases, so a designated blob stands in for
// them: a named lock of the Locker (Microsoft's "Managing concurrency in Azure Storage" describes this for tables).
//
// The lock alone binds only the clients that acquire it, and does not stop a holder that was paused. It becomes safe
// when every access is a transaction that carries the holder's fence, which the table itself then enforces:
//
//	lock, err := locker.Table("orders", "")
//	err = lock.Do(ctx, nil, func(ctx context.Context, h *pessimistic.Hold) error {
//		_, err := tables.Transact(ctx, orders, "eu", change, &tables.TransactOptions{Holder: h})
//		return err
//	})
//
// The fence is stored in each partition, with the first such transaction there. Choose either one lock per table or one
// per partition: their fences are not comparable, so a write under one may be refused because of the other.
//
// A TableLock is safe for concurrent use. Costs and errors are those of Locker.Lock, TryLock and Do.
type TableLock struct {
	locker *Locker
	name   string
}

// Table returns the lock of a table, or, if partition is not empty, of that partition. It sends no request.
func (k *Locker) Table(table, partition string) (*TableLock, error) {
	if table == "" {
		return nil, errors.New("table lock: no table")
	}
	name := "table/" + table
	if partition != "" {
		name += "/" + url.PathEscape(partition)
	}
	if _, err := k.blob(name); err != nil {
		return nil, err
	}
	return &TableLock{locker: k, name: name}, nil
}

// Name returns the name of the lock, for Show and Break.
func (t *TableLock) Name() string { return t.name }

// Lock waits until it holds the lock.
func (t *TableLock) Lock(ctx context.Context, opts *LockOptions) (*Hold, error) {
	return t.locker.Lock(ctx, t.name, opts)
}

// TryLock is Lock without waiting.
func (t *TableLock) TryLock(ctx context.Context) (*Hold, error) {
	return t.locker.TryLock(ctx, t.name)
}

// Do locks, runs fn, and releases the lock when fn has returned.
func (t *TableLock) Do(ctx context.Context, opts *LockOptions, fn func(ctx context.Context, h *Hold) error) error {
	return t.locker.Do(ctx, t.name, opts, fn)
}
