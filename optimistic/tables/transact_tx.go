package tables

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore"

	"github.com/azconc/azconc/optimistic"
	"github.com/azconc/azconc/optimistic/internal/protocol"
	"github.com/azconc/azconc/pkg/azerr"
)

// Tx is a transaction under construction. Its methods see the reads and writes made so far. Only Get and Peek send
// requests, one for each row the first time. Values are as in Entity: structs with json tags, maps with string keys,
// Properties. A Tx is not safe for concurrent use, and its methods fail after the change has returned.
//
// A write to a row that was read is conditional on the version that was read. When the change has returned, Transact reads the
// rows that Merge, Replace, Upsert and Put have written unread, 1 request each: so the entity keeps its operations and its
// lineage, and nothing that came after the write is overwritten if a response is lost. Insert requires that there is no
// entity, and Delete of an unread row that there is one. Submit sends a transaction without reading anything.
type Tx struct {
	t     *transaction // nil after the change has returned
	rows  map[string]*txRow
	order []*txRow
	last  *submission   // the previous attempt, which may have been applied after all
	fate  protocol.Fate // Committed or Performed, once a row has proved that of the previous attempt or of the operation
}

// txRow is one row in a transaction.
type txRow struct {
	row    string
	known  bool           // it was read: base and stored are set
	assert bool           // it was read with Get
	base   protocol.State // as read
	stored Properties     // as read; nil if there is none, or if only the version is known, by DeleteVersion
	op     txOp
	set    Properties // the properties that a merge sends, if the row was not read
	after  Properties // the content of the row afterwards; nil if it depends on the unread content
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

// Get decodes the entity into into, a pointer to a value, and reports whether the entity exists. If into is nil, the
// value is ignored. The transaction is applied only if the entity, or its absence, has not changed until then.
func (tx *Tx) Get(ctx context.Context, row string, into any) (bool, error) {
	return tx.get(ctx, row, into, true)
}

// Peek is Get without the condition: the entity may change before the transaction is applied, unless the row is also
// written.
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

// ETag returns the version of a row and whether the row was read, so that a change can compare it with a version from
// elsewhere. The version is empty if the row does not exist.
func (tx *Tx) ETag(row string) (etag azcore.ETag, read bool) {
	r := tx.rows[row]
	if r == nil || !r.known {
		return "", false
	}
	return r.base.ETag, true
}

// read reads a row. It returns errApplied if the row shows that this transaction or its operation has been applied.
func (tx *Tx) read(ctx context.Context, row string, assert bool) (*txRow, error) {
	t := tx.t
	r := &txRow{row: row, known: true, assert: assert}
	var err error
	r.base, err = protocol.Again(ctx, t.Call, func(ctx context.Context) (protocol.State, error) {
		stored, state, err := readEntity(ctx, t.table, t.partition, row)
		r.stored = stored.properties
		return state, err
	})
	if err != nil {
		return nil, tx.fail(r, azerr.Clean(err))
	}
	tx.add(r)
	tx.judge(r)
	if tx.fate != protocol.Unprovable {
		return nil, errApplied
	}
	return r, nil
}

// judge determines from a row that was read whether the previous attempt was applied, and whether the operation was
// carried out. A transaction is applied as a whole, so one row decides.
func (tx *Tx) judge(r *txRow) {
	if last := tx.last; last != nil && !last.open.Conflict.Judged {
		if m := last.member(r.row); m != nil && !m.witness.AnyBase {
			switch f, _ := tx.t.Judge(m.witness, r.base); f {
			case protocol.Committed, protocol.Performed:
				tx.fate = f
				return
			case protocol.Refused, protocol.Undecided:
				last.open.Conflict.Judged = last.open.Conflict.Judged || !last.weak(m)
			}
		}
	}
	if r.base.Lineage.Performed(tx.t.intent) {
		tx.fate = protocol.Performed
	}
}

func (tx *Tx) add(r *txRow) {
	if old := tx.rows[r.row]; old != nil { // it was written but not read
		tx.order = slices.DeleteFunc(tx.order, func(o *txRow) bool { return o == old })
	}
	tx.rows[r.row] = r
	tx.order = append(tx.order, r)
}

// content returns the content of the row within the transaction. ok is false if it is not known.
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

// Insert creates the entity. If it exists, the error is ErrExists: returned at once if the row was read, and otherwise
// by Transact.
func (tx *Tx) Insert(row string, value any) error { return tx.write(txInsert, row, value) }

// Update sets the properties that value names. The entity must have been read. Other properties are kept, and so are
// the types, as in Entity.
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
		return &optimistic.NotFoundError{Op: "update", Resource: tx.name(r)}
	}
	d, err := changeOf(content, true, value, tx.t.partition, row)
	if err != nil {
		return tx.fail(r, err)
	}
	r.after = d.after
	if r.known {
		r.op = txReplace // of the entity that was read: plan computes the changes
	}
	return nil
}

// Merge sets the properties that value has, and keeps the others. The entity must exist.
func (tx *Tx) Merge(row string, value any) error { return tx.write(txMerge, row, value) }

// Replace replaces all properties of the entity by value. The entity must exist.
func (tx *Tx) Replace(row string, value any) error { return tx.write(txReplace, row, value) }

// Upsert is Merge, or Insert if the entity does not exist.
func (tx *Tx) Upsert(row string, value any) error { return tx.write(txUpsert, row, value) }

// Put is Replace, or Insert if the entity does not exist.
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
			return &optimistic.NotFoundError{Op: "delete", Resource: tx.name(r)}
		}
	}
	r.op, r.after = txDelete, nil
	if r.known && !r.base.Exists {
		r.op = txNone // it was inserted in this transaction
	}
	return nil
}

// DeleteVersion deletes the entity if it is at a version that was read outside the transaction, such as by a query. The
// row must not have been used in the transaction before. Running the function again after a conflict does not help,
// because the version stays the same: set Attempts to 1.
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
	if err := (optimistic.Conditions{IfMatch: version}).Validate(); err != nil {
		return tx.fail(r, err)
	}
	r.known, r.base, r.op = true, protocol.State{Exists: true, ETag: version}, txDelete
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
	case r.op == txNone && merges:
		r.op, r.set = op, set
	case r.op == txNone:
		r.op, r.after = op, set
	case merges && r.after != nil:
		maps.Copy(r.after, set)
	case merges && r.op != txDelete:
		maps.Copy(r.set, set)
	default:
		return tx.fail(r, "it has been written in this transaction without having been read: Get it first")
	}
	return nil
}

// readWritten reads the rows that were written unread. Without their versions, a write would make the entities forget their
// operations, and overwrite what came after it if its response is lost.
func (tx *Tx) readWritten(ctx context.Context) error {
	order, members, size := slices.Clone(tx.order), 0, 0
	for _, w := range order {
		if !w.unread() {
			continue
		}
		body, err := entityDiff{after: w.given()}.body(tx.t.partition, w.row, protocol.Lineage{}, true)
		if err != nil {
			return tx.fail(w, err)
		}
		members, size = members+1, size+len(body)
	}
	if err := tx.t.within(members, size); err != nil { // before anything is read
		return err
	}
	for i, w := range order {
		if !w.unread() {
			continue
		}
		r, err := tx.read(ctx, w.row, false)
		if err != nil {
			return err
		}
		if err := tx.overlay(r, w.op, r.stored, r.base.Exists, w.given()); err != nil {
			return err
		}
		order[i] = r
	}
	tx.order = order
	return nil
}

// unread reports whether the row is written over a version that has to be read first.
func (r *txRow) unread() bool {
	return !r.known && r.op != txNone && r.op != txInsert && r.op != txDelete
}

// given returns the properties of a write to a row that was not read.
func (r *txRow) given() Properties {
	if r.set != nil {
		return r.set
	}
	return r.after
}

// overlay applies a write to a row whose content is known.
func (tx *Tx) overlay(r *txRow, op txOp, content Properties, exists bool, set Properties) error {
	switch {
	case exists && op == txInsert:
		return &optimistic.ConflictError{Op: "insert", Resource: tx.name(r), Reason: azerr.Exists, Current: r.base.ETag}
	case !exists && (op == txMerge || op == txReplace):
		return &optimistic.NotFoundError{Op: "write", Resource: tx.name(r)}
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
	if err := addressable(tx.t.partition, row); err != nil {
		return nil, fmt.Errorf("transact %s: %w", tx.t.Resource, err)
	}
	r := tx.rows[row]
	if r == nil {
		r = &txRow{row: row}
		tx.add(r)
	}
	return r, nil
}

func (tx *Tx) name(r *txRow) string { return tx.t.Resource + "/" + r.row }

// fail adds the row to an error.
func (tx *Tx) fail(r *txRow, why any) error {
	if err, ok := why.(error); ok {
		return fmt.Errorf("transact %s: %w", tx.name(r), err)
	}
	return fmt.Errorf("transact %s: %s", tx.name(r), why)
}
