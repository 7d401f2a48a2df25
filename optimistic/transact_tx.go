package optimistic

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore"

	"github.com/azconc/azconc/pkg/azerr"
)

// Tx is a transaction being put together. Its methods answer from what has been read and written so far; only Get and
// Peek send anything, one request for each row the first time. Values are as with Entity: structs with json tags, maps
// with string keys, Properties.
//
// A write to a row that has been read is on condition of the version read. A write to one that has not been read is on
// the condition of its name alone: Insert, that there is none; Merge, Replace and Delete, that there is one; Upsert and
// Put, none. Those miss what others wrote meanwhile.
type Tx struct {
	t     *transaction // nil when the change has returned
	rows  map[string]*txRow
	order []*txRow
	last  *submission // the attempt before, which may have been applied after all
	fate  fate        // committed or performed once a row has shown that of the attempt before, or of the operation
}

// txRow is one row in a transaction.
type txRow struct {
	row    string
	known  bool       // it was read; base and stored are what the service said
	assert bool       // it was read with Get
	base   State      // as read
	stored Properties // as read
	op     txOp
	set    Properties // what a merge sends
	after  Properties // what the row will hold; nil when that depends on what it holds
}

type txOp uint8

const (
	txNone txOp = iota
	txInsert
	txMerge
	txReplace
	txUpsert // insert or merge
	txPut    // insert or replace
	txDelete
)

var errEnded = errors.New("the transaction has ended: a Tx must not be used after its function has returned")

// Get reads the entity into into, a pointer to a value, and tells whether there is one. nil reads without looking.
// The transaction is carried out only if what Get found has not changed until then.
func (tx *Tx) Get(ctx context.Context, row string, into any) (bool, error) {
	return tx.get(ctx, row, into, true)
}

// Peek is Get without the condition: what it found may change before the transaction is carried out, unless the row is
// written as well.
func (tx *Tx) Peek(ctx context.Context, row string, into any) (bool, error) {
	return tx.get(ctx, row, into, false)
}

func (tx *Tx) get(ctx context.Context, row string, into any, assert bool) (bool, error) {
	if tx.t == nil {
		return false, errEnded
	}
	r := tx.rows[row]
	if r == nil || !r.known && r.op == txNone {
		var err error
		if r, err = tx.read(ctx, row, assert); err != nil {
			return false, err
		}
	}
	r.assert = r.assert || assert && r.known
	content, exists, ok := r.content()
	switch {
	case !ok:
		return false, tx.fail(r, "it has been merged without having been read: Get it first")
	case !exists:
		return false, nil
	case into == nil:
		return true, nil
	}
	if err := decodeInto(storedEntity{partition: tx.t.partition, row: row, properties: content}, into); err != nil {
		return false, tx.fail(r, err.Error())
	}
	return true, nil
}

// ETag returns the version of a row that has been read, and whether it was: a change that was told a version beforehand
// compares it. It is empty when there is no such row.
func (tx *Tx) ETag(row string) (etag azcore.ETag, read bool) {
	r := tx.rows[row]
	if r == nil || !r.known {
		return "", false
	}
	return r.base.ETag, true
}

// read fetches a row, and notices when what it finds is the transaction's own doing.
func (tx *Tx) read(ctx context.Context, row string, assert bool) (*txRow, error) {
	t := tx.t
	r := &txRow{row: row, known: true, assert: assert}
	var err error
	r.base, err = again(ctx, t.call, func(ctx context.Context) (State, error) {
		stored, state, err := readEntity(ctx, t.table, t.partition, row)
		r.stored = stored.properties
		return state, err
	})
	if err != nil {
		return nil, tx.fail(r, azerr.Clean(err))
	}
	tx.add(r)
	tx.judge(r)
	if tx.fate != unprovable {
		return nil, errApplied
	}
	return r, nil
}

// judge learns from a row that was read what became of the attempt before, and whether the operation has been carried
// out. Since all of a transaction is applied or nothing, one row decides.
func (tx *Tx) judge(r *txRow) {
	if last := tx.last; last != nil && !last.open.conflict.judged {
		if m := last.member(r.row); m != nil && !m.witness.anyBase {
			switch f, _ := tx.t.judge(m.witness, r.base); f {
			case committed, performed:
				tx.fate = f
				return
			case refused, undecided:
				last.open.conflict.judged = true
			}
		}
	}
	if r.base.Lineage.performed(tx.t.intent) {
		tx.fate = performed
	}
}

func (tx *Tx) add(r *txRow) {
	if old := tx.rows[r.row]; old != nil { // one that was named and not read
		tx.order = slices.DeleteFunc(tx.order, func(o *txRow) bool { return o == old })
	}
	tx.rows[r.row] = r
	tx.order = append(tx.order, r)
}

// content is what the row holds as far as the transaction goes; ok is false when that is not known.
func (r *txRow) content() (p Properties, exists, ok bool) {
	switch {
	case r.op == txDelete:
		return nil, false, true
	case r.op == txNone && r.known:
		return r.stored, r.base.Exists, true
	case r.after != nil:
		return r.after, true, true
	}
	return nil, false, false
}

// Insert creates the entity. If it exists, the error is ErrExists: at once when that has been read, and otherwise of
// Transact.
func (tx *Tx) Insert(row string, value any) error { return tx.write(txInsert, row, value) }

// Update lays value over the entity, which must have been read: properties that value does not name are kept, and so are
// the types, as with Entity.
func (tx *Tx) Update(row string, value any) error {
	r, err := tx.row(row)
	if err != nil {
		return err
	}
	content, exists, ok := r.content()
	switch {
	case !ok || !r.known && r.op == txNone:
		return tx.fail(r, "it has not been read: Get it first, or Merge")
	case !exists:
		return &NotFoundError{Op: "update", Resource: tx.name(r)}
	}
	d, err := changeOf(content, true, value, tx.t.partition, row)
	if err != nil {
		return tx.fail(r, err)
	}
	r.after = d.after
	if r.known {
		r.op = txReplace // of what was read: what has changed is found out in the end
	}
	return nil
}

// Merge sets the properties that value has, and keeps the others. The entity must exist.
func (tx *Tx) Merge(row string, value any) error { return tx.write(txMerge, row, value) }

// Replace makes value all that the entity holds. The entity must exist.
func (tx *Tx) Replace(row string, value any) error { return tx.write(txReplace, row, value) }

// Upsert is Merge, or Insert when there is no entity.
func (tx *Tx) Upsert(row string, value any) error { return tx.write(txUpsert, row, value) }

// Put is Replace, or Insert when there is no entity.
func (tx *Tx) Put(row string, value any) error { return tx.write(txPut, row, value) }

// Delete removes the entity, which must exist.
func (tx *Tx) Delete(row string) error {
	r, err := tx.row(row)
	if err != nil {
		return err
	}
	switch {
	case !r.known && r.op != txNone:
		return tx.fail(r, "it has been written in this transaction without having been read: Get it first")
	case r.known:
		if _, exists, _ := r.content(); !exists {
			return &NotFoundError{Op: "delete", Resource: tx.name(r)}
		}
	}
	r.op, r.after = txDelete, nil
	if r.known && !r.base.Exists {
		r.op = txNone // it was only just inserted
	}
	return nil
}

// DeleteVersion removes the entity if it is at a version that was learnt elsewhere, such as from a query. The row must not
// have been named in the transaction before. Since reading is not ours, running the function again after a conflict does
// not help: limit Attempts to 1.
func (tx *Tx) DeleteVersion(row string, version azcore.ETag) error {
	r, err := tx.row(row)
	switch {
	case err != nil:
		return err
	case version == "" || version == azcore.ETagAny:
		return tx.fail(r, "no version is given")
	case r.known || r.op != txNone:
		return tx.fail(r, "it has been read or written in this transaction")
	}
	r.known, r.base, r.op = true, State{Exists: true, ETag: version}, txDelete
	return nil
}

func (tx *Tx) write(op txOp, row string, value any) error {
	r, err := tx.row(row)
	if err != nil {
		return err
	}
	content, exists, _ := r.content()
	set, err := encodeValue(value, content)
	if err == nil {
		err = takeKeys(set, tx.t.partition, row)
	}
	if err != nil {
		return tx.fail(r, err)
	}
	if r.known {
		return tx.overlay(r, op, content, exists, set)
	}
	merges := op == txMerge || op == txUpsert
	switch {
	case r.op == txNone:
		r.op, r.set = op, set
		if !merges {
			r.after = set
		}
	case merges && r.op != txDelete:
		maps.Copy(r.set, set)
	default:
		return tx.fail(r, "it has been written in this transaction without having been read: Get it first")
	}
	return nil
}

// overlay is a write to a row whose content is known.
func (tx *Tx) overlay(r *txRow, op txOp, content Properties, exists bool, set Properties) error {
	switch {
	case exists && op == txInsert:
		return &ConflictError{Op: "insert", Resource: tx.name(r), Reason: azerr.Exists, Current: r.base.ETag}
	case !exists && (op == txMerge || op == txReplace):
		return &NotFoundError{Op: "write", Resource: tx.name(r)}
	case exists && (op == txMerge || op == txUpsert):
		merged := maps.Clone(content)
		maps.Copy(merged, set)
		set = merged
	}
	r.op, r.after = txReplace, set
	return nil
}

func (tx *Tx) row(row string) (*txRow, error) {
	if tx.t == nil {
		return nil, errEnded
	}
	r := tx.rows[row]
	if r == nil {
		r = &txRow{row: row}
		tx.add(r)
	}
	return r, nil
}

func (tx *Tx) name(r *txRow) string { return tx.t.resource + "/" + r.row }

// fail names the row.
func (tx *Tx) fail(r *txRow, why any) error {
	if err, ok := why.(error); ok {
		return fmt.Errorf("transact %s: %w", tx.name(r), err)
	}
	return fmt.Errorf("transact %s: %s", tx.name(r), why)
}
