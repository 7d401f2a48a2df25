package optimistic

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore"
	"github.com/Azure/azure-sdk-for-go/sdk/data/aztables"

	"github.com/azconc/azconc/pkg/azerr"
	"github.com/azconc/azconc/pkg/retry"
)

// TransactOptions tunes Transact. The zero value is the default.
type TransactOptions struct {
	// OperationID makes the transaction idempotent across processes: if an entity that it reads, or one that it meets as
	// a conflict, has the operation in its lineage, nothing is written and AlreadyApplied is set. The window is the
	// lineage. Defaults to none.
	OperationID string

	// Guard is the row of an entity of the partition that stands for all rows that do not exist: it is read first, and
	// written by every transaction that creates an entity or depends on one being absent. Transactions with the same
	// Guard then see each other's creations as conflicts; others are not bound by it. It is created when first needed.
	// Defaults to none: a transaction that depends on an entity being absent, without creating it, is refused.
	Guard string

	// Holder makes it a transaction under a lock: it is refused with ErrFenced when a later holder has written to the
	// partition, in the same request that writes, and before every request the holder is asked whether he still has the
	// lock. The entity FenceRow of the partition stores the latest fence; every such transaction reads it first, asserts
	// it, and so has one entity less to spend. It does for Guard, too. Defaults to none.
	Holder Holder

	// Attempts bounds how often the function is run; negative means no bound. Defaults to 12.
	Attempts int

	// Elapsed bounds the time spent on conflicts; negative means no bound. Defaults to 30 s.
	Elapsed time.Duration

	// Backoff spaces the attempts after a conflict. Defaults to full jitter of 20 ms, doubling, at most 2 s.
	Backoff retry.Backoff

	Sending

	_ struct{}
}

// TransactResult tells what a transaction did and what it took. Created, ETag and BaseETag of the Result stay zero: they
// are about single resources.
type TransactResult struct {
	Result

	// ETags are the new versions by row: of what was written, and of what was only read, because reading is asserted by
	// a write. After an answer that was lost only those are there that were looked at.
	ETags map[string]azcore.ETag
}

// Transact runs change, which reads and writes entities of one partition through tx, and carries its writes out in one
// entity group transaction: all of them, on condition that nothing that was read has changed, or none. On a conflict it
// runs change again on what is there then, until the budget is spent.
//
// change must be free of side effects, as with Update. If it returns ErrSkip nothing is written; any other error ends
// Transact and is returned as it is. If it writes nothing, or nothing that makes a difference, nothing is sent.
//
// A nil error means that all writes were applied exactly once. The errors are those of Update; a *ConflictError names
// the row that was changed by another. An answer that was lost is resolved by the lineages of the written entities:
// since all are written or none, the first one that proves anything decides for all. A transaction of deletions alone
// leaves nothing to prove it by.
//
// # Reads
//
// The service can only assert what it writes. An entity that is read with Get and not written is therefore merged with
// nothing but its lineage, on condition of its ETag: its ETag changes, readers of it are contenders, and it counts among
// the 100. Peek reads without that. There is no operation that asserts that an entity does not exist, other than creating
// it, so a transaction that has found one absent and does not write it is refused; see TransactOptions.Guard.
//
// Reads are made one by one, so until the transaction is carried out they need not fit together. Then they are proved
// to; but a change that returns an error, or writes nothing, has been told what may never have been true at one time.
//
// # Limits
//
// One partition, 100 entities, 4 MiB, no entity twice (several writes to one become one). Anything else is refused
// before it is sent.
//
// Cost: 1 request per entity read (the fence under a Holder is one), 1 for the transaction; each conflict costs as much again, and a conflict that is
// final 1 more. Transact is safe for concurrent use; tx is not, and ends with change.
func Transact(ctx context.Context, table *aztables.Client, partition string, change func(ctx context.Context, tx *Tx) error, opts *TransactOptions) (TransactResult, error) {
	var o TransactOptions
	if opts != nil {
		o = *opts
	}
	u, err := (&UpdateOptions{OperationID: o.OperationID, Attempts: o.Attempts, Elapsed: o.Elapsed, Backoff: o.Backoff, Sending: o.Sending}).withDefaults()
	if err != nil {
		return TransactResult{}, err
	}
	if err := addressable(partition); err != nil {
		return TransactResult{}, err
	}
	resource := tableName(table) + "/" + partition
	t := transaction{
		call:  newCall("transact", resource, u.Sending, TableEntity[Properties](table, partition, "")),
		table: table, partition: partition, change: change, o: u, guard: o.Guard, operation: o.OperationID != "", holder: o.Holder,
	}
	if t.holder != nil && t.guard == "" {
		t.guard = FenceRow // which every transaction under a lock writes, so nothing can appear behind its back
	}
	err = t.run(ctx)
	return TransactResult{Result: t.finish(), ETags: t.etags}, err
}

type transaction struct {
	*call
	table     *aztables.Client
	partition string
	change    func(context.Context, *Tx) error
	o         UpdateOptions
	guard     string
	holder    Holder
	operation bool
	etags     map[string]azcore.ETag
}

// errApplied ends a change that reads what an earlier attempt of the same transaction has written.
var errApplied = errors.New("this transaction has been applied already")

func (t *transaction) run(ctx context.Context) error {
	budget := retry.Budget{Attempts: t.o.Attempts, Elapsed: t.o.Elapsed, Backoff: t.o.Backoff}.Start()
	var last *submission // the one that met a conflict
	for {
		s, err := t.attempt(ctx, last)
		if s == nil || err != nil {
			return err
		}
		if t.holder != nil {
			s.write.send = guarded(t.holder, s.write.send)
		}
		_, err = t.commit(ctx, s.write)
		if err == nil {
			t.won(s)
			return nil
		}
		failed, again := s.refused(err)
		if failed == nil && !again {
			return t.named(s, err)
		}
		t.res.Conflicts++
		t.s.Logger.DebugContext(ctx, "conflict", "resource", t.resource, "attempt", t.res.Attempts, "error", azerr.Summary(err))
		if !again {
			return t.surrender(ctx, s, failed, err)
		}
		seen := s.write.base.Lineage
		if failed != nil {
			seen = failed.witness.base.Lineage
		}
		if err := budget.NextAfter(ctx, t.pause(seen, t.o.Backoff)); err != nil {
			if ctx.Err() != nil {
				return t.fail(err)
			}
			return t.surrender(ctx, s, failed, s.answer)
		}
		last = s
	}
}

// attempt runs the change and plans what it asks for. There is no submission when there is nothing to send, or nothing
// to send any more.
func (t *transaction) attempt(ctx context.Context, last *submission) (*submission, error) {
	id := newWriteID(t.writer)
	if t.operation {
		id = operationKey(t.o.OperationID)
	}
	tx := &Tx{t: t, rows: map[string]*txRow{}, last: last}
	if t.operation {
		tx.done = id
	}
	defer func() { tx.t = nil }()
	if t.guard != "" {
		if _, err := tx.read(ctx, t.guard, false); err != nil && !tx.applied {
			return nil, err
		}
	}
	var s *submission
	var err error
	if !tx.applied {
		t.res.Attempts++
		if t.holder != nil {
			err = tx.claim(ctx, t.holder)
		}
		if err == nil {
			err = t.change(withAttempt(ctx, t.res.Attempts-1), tx)
		}
	}
	if err == nil && !tx.applied {
		s, err = t.plan(tx, id)
	}
	if tx.applied || last != nil && !tx.met && t.landed(ctx, last) {
		if last == nil {
			t.res.AlreadyApplied = true
			return nil, nil
		}
		// The answer said conflict, and yet it is there: something on the way delivered it twice.
		t.res.Resolved++
		t.won(last)
		return nil, nil
	}
	if errors.Is(err, ErrSkip) {
		return nil, nil
	}
	if cause, ok := retry.Stopped(err); ok {
		return nil, cause
	}
	return s, err
}

// landed asks whether a submission that met a conflict has been applied nevertheless; it is needed when the change has
// not read again any of what that one wrote.
func (t *transaction) landed(ctx context.Context, s *submission) bool {
	now, err := t.look(ctx, s.write.look)
	if err != nil {
		return false
	}
	f, _ := s.write.judge(now)
	return f == committed
}

func (t *transaction) won(s *submission) {
	t.res.Changed, t.res.WriteID = true, s.stamp
	t.etags = s.etags
}

// surrender makes a conflict final. It looks once at what failed, or, where that leaves no trace, at what would: which
// version is there now, and is it perhaps ours?
func (t *transaction) surrender(ctx context.Context, s *submission, failed *member, err error) error {
	w, telling := s.write, s.stamp != ""
	if failed != nil && !failed.witness.remove {
		w, telling = failed.witness, true
	}
	var now State
	lookErr := errNotLooked
	if telling {
		now, lookErr = t.look(ctx, w.look)
	}
	if f, _ := w.judge(now); lookErr == nil && f == committed {
		if t.operation {
			t.res.AlreadyApplied = true
			return nil
		}
		t.res.Resolved++
		if w.id == s.stamp && failed != nil && !failed.witness.remove {
			s.etags = map[string]azcore.ETag{failed.row: now.Lineage.produced(s.stamp, now.ETag)}
		}
		t.won(s)
		return nil
	}
	if failed == nil {
		return err
	}
	return t.refusalOf(failed, now, lookErr, s.answer)
}

var errNotLooked = errors.New("not looked")

// named says which row an error is about, if it is about one.
func (t *transaction) named(s *submission, err error) error {
	i := azerr.Classify(s.answer).Index
	if _, open := errors.AsType[*UnknownError](err); open || i < 0 || i >= len(s.members) {
		return err
	}
	return fmt.Errorf("%s %s/%s: %w", t.op, t.resource, s.members[i].row, azerr.Clean(s.answer))
}

// refusalOf is the error about the row that failed.
func (t *transaction) refusalOf(m *member, now State, lookErr error, err error) error {
	out := azerr.Classify(err)
	name := fmt.Sprintf("%s/%s", t.resource, m.row)
	if out.Kind == azerr.NotFound && !m.witness.base.Exists {
		return &NotFoundError{Op: t.op, Resource: name, Err: azerr.Clean(err)}
	}
	reason := out.Reason
	if out.Kind == azerr.NotFound {
		reason = azerr.Gone
	}
	conflict := &ConflictError{
		Op: t.op, Resource: name, Reason: reason, Base: m.witness.base.ETag,
		Attempts: t.res.Attempts, Elapsed: time.Since(t.began), Err: azerr.Clean(err),
	}
	if lookErr == nil && !m.witness.remove {
		conflict.Current = now.ETag
	}
	return conflict
}
