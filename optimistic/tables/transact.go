package tables

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore"
	"github.com/Azure/azure-sdk-for-go/sdk/data/aztables"

	"github.com/azconc/azconc/optimistic"
	"github.com/azconc/azconc/optimistic/internal/begin"
	"github.com/azconc/azconc/optimistic/internal/protocol"
	"github.com/azconc/azconc/optimistic/internal/sealed"
	"github.com/azconc/azconc/pkg/azerr"
	"github.com/azconc/azconc/pkg/fence"
	"github.com/azconc/azconc/pkg/ptr"
	"github.com/azconc/azconc/pkg/retry"
)

// TransactOptions tunes Transact. The zero value is the default.
type TransactOptions struct {
	// OperationID makes the transaction idempotent across processes: if an entity that it reads, or that causes a
	// conflict, remembers the operation, nothing is written and AlreadyApplied is set. Every entity that is written remembers the
	// operation, and is sent even if it is left unchanged; see UpdateOptions.OperationID for how long. A transaction that only deletes, or
	// that writes nothing, leaves no trace. Defaults to none.
	OperationID string

	// Guard is the row of an entity of the partition that stands for all rows that do not exist. Every transaction with
	// a Guard reads it first, and writes it if the transaction creates an entity or depends on one being absent.
	// Transactions with the same Guard see each other's creates as conflicts; other transactions do not. The entity is
	// created when it is first needed. Defaults to none: then a transaction that depends on an entity being absent,
	// without creating it, is refused.
	Guard string

	// Holder makes the transaction one under a lock. It fails with ErrFenced if a later holder has written to the
	// partition, and before every request Holder is asked whether it still holds the lock. The entity FenceRow of the
	// partition stores the latest fence; every such transaction reads it first and asserts it, which leaves 99
	// entities. It also serves as Guard. Defaults to none.
	Holder fence.Holder

	// Attempts bounds how many times the function is run; negative means no bound. Defaults to 50.
	Attempts int

	// Elapsed bounds the time spent on conflicts; negative means no bound. Defaults to 30 s.
	Elapsed time.Duration

	// Backoff spaces the attempts after a conflict. Defaults to that of optimistic.UpdateOptions.
	Backoff retry.Backoff

	optimistic.SendOptions

	_ struct{}
}

// TransactResult describes what a transaction did and what it cost. Created, ETag and BaseETag of Result are not set,
// because they describe single resources.
type TransactResult struct {
	optimistic.Result

	// ETags are the new versions by row: of the entities that were written, and of those that were only read, because a
	// write asserts a read. After a lost response there are none, because the versions that a look finds may be later
	// ones.
	ETags map[string]azcore.ETag
}

// Transact runs change, which reads and writes entities of one partition through tx, and sends its writes in one entity
// group transaction: all of them are applied, on the condition that nothing that was read has changed, or none. On a
// conflict it reads again and runs change again, until the budget is spent.
//
// change must be free of side effects, as in Update. If it returns ErrSkip, nothing is written; any other error ends
// Transact and is returned unchanged. If its writes change nothing, nothing is sent.
//
// A nil error means that all writes were applied exactly once. The errors are those of Update; a *ConflictError names
// the row that another writer has changed. A lost response is resolved by the lineages of the written entities: since
// all are written or none, the first one that proves anything decides for all. An entity that is inserted proves less
// than one that is updated: others may have deleted it and inserted it again. Nothing proves the outcome of a transaction
// that only deletes.
//
// # Reads
//
// The service asserts the version of an entity only by writing it. So an entity that is read with Get and not written
// is merged with nothing but its lineage, on the condition of its ETag: its ETag changes, its readers contend, and it
// counts among the 100. Peek reads without a condition. Except by creating an entity, the service cannot assert that it
// does not exist. So a transaction that finds an entity absent and does not create it is refused; see
// TransactOptions.Guard.
//
// Entities are read one by one, so they need not be consistent with each other. If the transaction is applied, that
// proves that they were. A change that returns an error, or writes nothing, may have seen a state that never existed.
//
// # Limits
//
// One partition, 100 entities, 4 MiB, no entity twice (several writes to one become one). Anything else is refused
// before it is sent.
//
// Cost: 1 request per entity read (the fence of a Holder is one; see Tx for the writes that read), and 1 for the transaction.
// Each conflict costs as much again, and a final conflict 1 or 2 more. A rerun under a Holder that finds its operation carried
// out stores the fence, for 2 more, or 1 if it is there. Transact is safe for concurrent use. tx is not, and cannot be used after
// change returns.
func Transact(ctx context.Context, table *aztables.Client, partition string, change func(ctx context.Context, tx *Tx) error, opts *TransactOptions) (_ TransactResult, err error) {
	if err := sealed.NotNil("transact", "table", table, "change", change); err != nil {
		return TransactResult{}, err
	}
	o := ptr.Value(opts)
	if o.OperationID != "" && o.NoLineage {
		return TransactResult{}, errors.New("TransactOptions.OperationID: it is remembered in the lineage, which NoLineage turns off")
	}
	if err := addressable(partition); err != nil {
		return TransactResult{}, err
	}
	resource := tableName(table) + "/" + partition
	call, err := begin.Call(o.SendOptions, "transact", resource)
	if err != nil {
		return TransactResult{}, err
	}
	t := transaction{
		Loop: protocol.Loop{
			Call: call, Place: fmt.Sprintf("%p/%s", table, resource), Budget: protocol.ConflictBudget(o.Attempts, o.Elapsed, o.Backoff),
		},
		table: table, partition: partition, change: change, guard: o.Guard, intent: protocol.NewIntent("transact", o.OperationID), holder: o.Holder,
		counts: map[string]protocol.Lineage{},
	}
	ctx, end := t.Start(ctx, "tables.Transact")
	defer end(&err)
	t.Next, t.Refused, t.Surrender = t.next, t.refused, t.surrender
	if t.holder != nil && t.guard == "" {
		t.guard = FenceRow // every transaction under a lock writes it, so none misses a create by another
	}
	if err = t.Run(ctx); err == nil && t.Res.AlreadyApplied && t.holder != nil {
		err = t.storeFence(ctx)
	}
	return TransactResult{Result: optimistic.Result(t.Finish()), ETags: t.etags}, err
}

// transaction is one Transact in progress.
type transaction struct {
	protocol.Loop
	table     *aztables.Client
	partition string
	change    func(context.Context, *Tx) error
	guard     string
	holder    fence.Holder
	intent    protocol.Intent
	last      *submission // the one that was sent last
	etags     map[string]azcore.ETag
	counts    map[string]protocol.Lineage // by row, as it was first read
}

// storeFence stores the holder's fence after the operation was found to be carried out, maybe under an earlier holder: what
// succeeds under a holder excludes those before.
func (t *transaction) storeFence(ctx context.Context) error {
	attempts := t.Res.Attempts
	t.intent, t.last = protocol.Intent{}, nil
	t.change = func(context.Context, *Tx) error { return nil }
	err := t.Run(ctx)
	t.Res.Attempts, t.Res.Changed, t.Res.WriteID, t.etags = attempts, false, "", nil
	return err
}

// errApplied ends a change that reads the result of an earlier attempt of the same transaction.
var errApplied = errors.New("this transaction has been applied already")

// next runs the change and plans the submission of its writes.
func (t *transaction) next(ctx context.Context, open *protocol.Refusal) (*protocol.Change, error) {
	s, err := t.attempt(ctx, open)
	if s == nil || err != nil {
		return nil, err
	}
	t.last = s
	w := s.Change
	w.Won = func(azcore.ETag) { t.won(s) }
	if t.holder != nil {
		w.Guard = t.holder.Guard
	}
	return &w, nil
}

// refused names the member of the last submission that was refused.
func (t *transaction) refused(w protocol.Change, err error) (open *protocol.Refusal, again bool, cause error) {
	s := t.last
	failed, again := s.refused(err)
	if failed == nil && !again {
		return nil, false, t.named(s, err)
	}
	conflict, ok := errors.AsType[*optimistic.ConflictError](err)
	if !ok {
		conflict = &optimistic.ConflictError{Op: t.Op, Resource: t.Resource, Err: azerr.Clean(s.answer)}
	}
	s.open = &protocol.Refusal{Change: w, Conflict: conflict, Contended: w.Base.Lineage, Doubted: !ok}
	s.failed, s.err = failed, err
	if failed != nil {
		s.open.Contended = failed.witness.Base.Lineage
	}
	return s.open, again, err
}

// attempt runs the change and plans a submission. It returns nil if there is nothing to send. open is the refusal of the last
// submission, whose outcome is known before attempt returns.
func (t *transaction) attempt(ctx context.Context, open *protocol.Refusal) (*submission, error) {
	last := t.last
	tx := &Tx{t: t, rows: map[string]*txRow{}, last: last}
	defer func() { tx.t = nil }()
	if t.guard != "" {
		if _, err := tx.read(ctx, t.guard, false); err != nil && tx.fate == protocol.Unprovable {
			return nil, t.Abandon(ctx, open, err)
		}
	}
	var s *submission
	var err error
	if tx.fate == protocol.Unprovable {
		t.Res.Attempts++
		if t.holder != nil {
			err = tx.claim(ctx, t.holder)
		}
		if err == nil {
			err = t.change(protocol.WithRun(ctx, t.Res.Attempts-1, protocol.State{}), tx)
		}
	}
	if err == nil && tx.fate == protocol.Unprovable {
		err = tx.readWritten(ctx)
	}
	if err == nil && tx.fate == protocol.Unprovable {
		s, err = t.plan(tx)
	}
	switch tx.fate {
	case protocol.Committed:
		// The response was a conflict, but the submission was applied: an intermediary has delivered it twice.
		t.Resolved(ctx)
		last.etags = nil
		t.won(last)
		return nil, nil
	case protocol.Performed:
		t.Res.AlreadyApplied = true
		return nil, nil
	}
	if open != nil && t.Doubtful(open) { // the change has not read anything again that shows the outcome
		if done, verdict := t.lookAgain(ctx, last); done {
			return nil, verdict
		}
	}
	if errors.Is(err, optimistic.ErrSkip) {
		return nil, nil
	}
	if cause, ok := retry.Stopped(err); ok {
		return nil, cause
	}
	return s, err
}

// lookAgain looks at a refused submission that would have left a trace, unless it has been judged. done means that the call
// is over.
func (t *transaction) lookAgain(ctx context.Context, s *submission) (done bool, err error) {
	if s.open.Conflict.Judged || s.stamp == "" {
		return false, nil
	}
	now, err := t.Look(ctx, s.Change.Look)
	if err != nil {
		return true, t.Abandon(ctx, s.open, t.Fail(err))
	}
	return t.Confirm(ctx, s.open, now)
}

// won records that s was applied.
func (t *transaction) won(s *submission) {
	t.Res.Changed, t.Res.WriteID = true, s.stamp
	t.Res.Created, t.Res.ETag, t.Res.BaseETag = false, "", ""
	t.etags = s.etags
}

// surrender makes a conflict final. It looks once at the entity that failed, or, if that leaves no trace, at one that
// does, to name the current version, and to notice a submission that was applied after all.
func (t *transaction) surrender(ctx context.Context, _ *protocol.Refusal) error {
	s := t.last
	if done, verdict := t.lookAgain(ctx, s); done {
		return verdict
	}
	if s.failed == nil {
		return s.err
	}
	if s.seen == nil && !s.failed.witness.Remove {
		if now, err := t.Look(ctx, s.failed.witness.Look); err == nil {
			s.seen = &now
		}
	}
	return t.refusalOf(s)
}

// named adds the row to an error that concerns one.
func (t *transaction) named(s *submission, err error) error {
	m := s.culprit()
	if _, open := errors.AsType[*optimistic.UnknownError](err); open || m == nil {
		return err
	}
	return fmt.Errorf("%s %s/%s: %w", t.Op, t.Resource, m.row, azerr.Clean(s.answer))
}

// refusalOf returns the error for the row that failed.
func (t *transaction) refusalOf(s *submission) error {
	out, base := azerr.Classify(s.answer), s.failed.witness.Base
	name := fmt.Sprintf("%s/%s", t.Resource, s.failed.row)
	if out.Kind == azerr.NotFound && !base.Exists {
		return &optimistic.NotFoundError{Op: t.Op, Resource: name, Err: azerr.Clean(s.answer)}
	}
	conflict := &optimistic.ConflictError{
		Op: t.Op, Resource: name, Reason: out.Reason, Base: base.ETag, Attempts: t.Res.Attempts, Elapsed: time.Since(t.Began), Err: azerr.Clean(s.answer),
	}
	if out.Kind == azerr.NotFound {
		conflict.Reason = azerr.Gone
	}
	if s.seen != nil && !s.failed.witness.Remove {
		conflict.Current = s.seen.ETag
	}
	return conflict
}
