package pessimistic

import (
	"errors"
	"net/url"
)

// TableLock returns the name of the lock of a table, or, if partition is not empty, of that partition. Tables have no
// leases, so a named lock stands in for them (Microsoft's "Managing concurrency in Azure Storage" describes this for
// tables). TableLock sends no request.
//
// The lock alone binds only the clients that acquire it, and does not stop a holder that was paused. It becomes safe
// when every access is a transaction that carries the holder's fence, which the table itself then enforces:
//
//	name, err := locker.TableLock("orders", "")
//	err = locker.Do(ctx, name, nil, func(ctx context.Context, h *pessimistic.Hold) error {
//		_, err := tables.Transact(ctx, orders, "eu", change, &tables.TransactOptions{Holder: h})
//		return err
//	})
//
// The fence is stored in each partition, with the first such transaction there. Choose either one lock per table or one
// per partition: their fences are not comparable, so a write under one may be refused because of the other.
func (k *Locker) TableLock(table, partition string) (name string, err error) {
	if table == "" {
		return "", errors.New("table lock: no table")
	}
	name = "table/" + table
	if partition != "" {
		name += "/" + url.PathEscape(partition)
	}
	_, err = k.blob(name)
	return name, err
}
