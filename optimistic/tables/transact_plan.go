package tables

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore"
	"github.com/Azure/azure-sdk-for-go/sdk/data/aztables"

	"github.com/azconc/azconc/optimistic"
	"github.com/azconc/azconc/optimistic/internal/protocol"
	"github.com/azconc/azconc/pkg/azerr"
	"github.com/azconc/azconc/pkg/batch"
)

// Limits of the service (REST: "Performing entity group transactions").
const (
	maxMembers     = 100
	maxTransaction = 4 << 20
	memberOverhead = 1 << 10 // an upper bound of the headers around each entity
)

// member is one entity in a submission.
type member struct {
	row     string
	action  aztables.TransactionAction
	read    bool            // it is conditional on a version that was read, so running the change again can help
	witness protocol.Change // its part of the submission, to judge the whole by this entity
}

// submission is one entity group transaction, with everything needed to judge it.
type submission struct {
	call      *protocol.Call
	members   []*member
	actions   []aztables.TransactionAction
	stamp     string            // the id in the lineages; empty if they are switched off
	witnesses []*member         // the members, the most conclusive first
	Change    protocol.Change   // the whole transaction as one write
	answer    error             // the service's last response
	open      *protocol.Refusal // set once the submission was refused; Judged once a look has confirmed that
	seen      *optimistic.State // the state of the member that failed, from the latest look
	etags     map[string]azcore.ETag
}

// plan turns the requests of the change into a submission, or nil if there is nothing to send.
func (t *transaction) plan(tx *Tx) (*submission, error) {
	s := &submission{call: t.Call, etags: map[string]azcore.ETag{}}
	id := protocol.NewWriteID(t.Writer)
	guarded, creates, writes := false, false, false
	var reads []*txRow
	for _, r := range tx.order {
		if t.guard != "" && r.row == t.guard && r.op == txNone {
			continue
		}
		if r.op == txNone || r.untouched() {
			if r.known && r.assert {
				reads = append(reads, r)
			}
			continue
		}
		writes = true
		creates = creates || r.creates()
		if err := t.join(s, r, id); err != nil {
			return nil, tx.fail(r, err)
		}
	}
	if !writes {
		return nil, nil
	}
	for _, r := range reads {
		if !r.base.Exists {
			if t.guard == "" {
				return nil, tx.fail(r, "it was read as absent and is not written, and the service cannot assert that: Insert it, Peek instead, or name a Guard")
			}
			guarded = true
			continue
		}
		if err := t.join(s, r, id); err != nil {
			return nil, tx.fail(r, err)
		}
	}
	if g := tx.rows[t.guard]; t.guard != "" && (guarded || creates || g.assert) && g.op == txNone {
		g.assert = true
		if !g.base.Exists {
			g.op, g.after = txInsert, Properties{}
		}
		if err := t.join(s, g, id); err != nil {
			return nil, tx.fail(g, err)
		}
	}
	return s, t.close(s)
}

// untouched reports whether the writes to a row have restored what was read.
func (r *txRow) untouched() bool {
	return r.known && r.base.Exists && r.op == txReplace && maps.Equal(r.after, r.stored)
}

func (r *txRow) creates() bool {
	if r.known {
		return !r.base.Exists
	}
	return r.op == txInsert || r.op == txUpsert || r.op == txPut
}

// join adds a row to the submission.
func (t *transaction) join(s *submission, r *txRow, id string) error {
	m := &member{row: r.row, read: r.known}
	m.witness = protocol.Change{Base: r.base, AnyBase: !r.known && r.op != txInsert, Remove: r.op == txDelete, Look: t.lookAt(r.row)}
	match := azcore.ETagAny
	if r.known {
		match = r.base.ETag
	}
	// The SDK does not double the quotes of keys in the URLs of a transaction, where a quote ends the key. The keys in
	// the body of an update are ignored (OData: they cannot be changed); those of an insert count.
	partition, row := doubled(t.partition), doubled(r.row)
	kind, d, whole := r.action()
	switch kind {
	case aztables.TransactionTypeAdd:
		partition, row = t.partition, r.row
	case aztables.TransactionTypeUpdateMerge, aztables.TransactionTypeUpdateReplace, aztables.TransactionTypeDelete:
		m.action.IfMatch = &match // without it the first two would be upserts
	}
	var lineage optimistic.Lineage
	if !m.witness.Remove {
		base := r.base
		if m.witness.AnyBase {
			base.ETag = protocol.UnknownBase
		}
		m.witness.ID, lineage = t.StampAs(id, base, t.intent)
		m.witness.Op, m.witness.Traced = t.intent, m.witness.ID != ""
		s.stamp = m.witness.ID
	}
	var err error
	m.action.ActionType = kind
	if m.witness.Remove {
		m.action.Entity, err = encodeEntity(partition, row, nil)
	} else {
		m.action.Entity, err = d.body(partition, row, lineage, whole)
	}
	s.members = append(s.members, m)
	return err
}

// action returns the form in which a row is sent: as a whole, or as changes only.
func (r *txRow) action() (kind aztables.TransactionType, d entityDiff, whole bool) {
	switch {
	case r.op == txDelete:
		return aztables.TransactionTypeDelete, d, false
	case r.op == txInsert, r.known && !r.base.Exists:
		return aztables.TransactionTypeAdd, entityDiff{after: r.after}, true
	case r.known:
		d.before = r.stored
		if r.after == nil {
			r.after = r.stored // only asserted
		}
		if d.compare(r.stored, r.after); d.removed {
			return aztables.TransactionTypeUpdateReplace, d, true
		}
		return aztables.TransactionTypeUpdateMerge, d, false
	}
	kind = map[txOp]aztables.TransactionType{
		txMerge: aztables.TransactionTypeUpdateMerge, txReplace: aztables.TransactionTypeUpdateReplace,
		txUpsert: aztables.TransactionTypeInsertMerge, txPut: aztables.TransactionTypeInsertReplace,
	}[r.op]
	if r.op == txMerge || r.op == txUpsert {
		return kind, entityDiff{set: r.set, after: r.set}, false
	}
	return kind, entityDiff{after: r.after}, true
}

func doubled(key string) string { return strings.ReplaceAll(key, "'", "''") }

func (t *transaction) lookAt(row string) func(context.Context) (optimistic.State, error) {
	return func(ctx context.Context) (optimistic.State, error) {
		_, state, err := readEntity(ctx, t.table, t.partition, row)
		return state, err
	}
}

// close checks the limits and makes the whole submission one write.
func (t *transaction) close(s *submission) error {
	if len(s.members) > maxMembers {
		return t.Fail(fmt.Errorf("%d entities are read or written; the service takes %d in a transaction (Peek does not count)", len(s.members), maxMembers))
	}
	size, conditional, pinned := 0, false, false
	for _, m := range s.members {
		s.actions = append(s.actions, m.action)
		size += len(m.action.Entity) + memberOverhead
		pinned = pinned || m.action.IfMatch != nil && *m.action.IfMatch != azcore.ETagAny
		conditional = conditional || m.action.ActionType == aztables.TransactionTypeAdd || m.action.IfMatch != nil && *m.action.IfMatch != azcore.ETagAny
	}
	if size > maxTransaction {
		return t.Fail(fmt.Errorf("the entities take %d bytes; the service takes %d in a transaction", size, maxTransaction))
	}
	s.witnesses = slices.SortedStableFunc(slices.Values(s.members), func(a, b *member) int { return silence(a.witness) - silence(b.witness) })
	s.Change = protocol.Change{
		Base: s.witnesses[0].witness.Base, ID: cmp.Or(s.stamp, protocol.NewWriteID(t.Writer)), AnyBase: !conditional, Pinned: pinned, Look: s.look,
		Traced: s.stamp != "", Op: t.intent,
		Send: func(ctx context.Context) (azcore.ETag, error) {
			optimistic.CountRequest(ctx)
			var etags []azcore.ETag
			etags, s.answer = batch.Submit(ctx, t.table, s.actions)
			for i, etag := range etags {
				if etag != "" {
					s.etags[s.members[i].row] = etag
				}
			}
			return "", s.answer
		},
	}
	return nil
}

// silence ranks a write by how little its entity proves afterwards.
func silence(w protocol.Change) (rank int) {
	if w.Remove {
		rank = 2
	}
	if w.AnyBase {
		rank++
	}
	return rank
}

// look looks at the entities one after the other, starting with the one that failed. The submission is carried out as a
// whole or not at all, so the first entity that proves it applied, or proves that it never can be, decides for all. An
// unchanged entity only shows that nothing has happened so far.
func (s *submission) look(ctx context.Context) (optimistic.State, error) {
	gone, open := 0, false
	for _, m := range s.asked() {
		now, err := m.witness.Look(ctx)
		if err != nil {
			return optimistic.State{}, err
		}
		if i := azerr.Classify(s.answer).Index; i >= 0 && i < len(s.members) && s.members[i] == m {
			s.seen = &now
		}
		switch f, _ := s.call.Judge(m.witness, now); {
		case f == protocol.Committed && m.witness.Remove: // an unconditional deletion: the entity is gone, no matter who deleted it
			gone++
		case f == protocol.Committed, f == protocol.Performed, f == protocol.Refused:
			return s.proof(f, now), nil
		case f == protocol.Undecided && !m.witness.AnyBase:
			open = true
		}
	}
	switch {
	case open:
		return s.proof(protocol.Undecided, optimistic.State{}), nil
	case gone == len(s.members):
		return s.proof(protocol.Committed, optimistic.State{}), nil // the submission does nothing else
	}
	return s.proof(protocol.Unprovable, optimistic.State{}), nil
}

// asked returns the members in the order in which look visits them.
func (s *submission) asked() []*member {
	i := azerr.Classify(s.answer).Index
	if i < 0 || i >= len(s.members) || s.members[i].witness.Remove {
		return s.witnesses
	}
	rest := slices.DeleteFunc(slices.Clone(s.witnesses), func(m *member) bool { return m == s.members[i] })
	return append([]*member{s.members[i]}, rest...)
}

// proof returns a state from which Judge draws the same conclusion about the whole as about one entity.
func (s *submission) proof(f protocol.Fate, now optimistic.State) optimistic.State {
	base := s.Change.Base
	switch f {
	case protocol.Committed:
		s.etags = nil // the versions that were found may be later ones
		return optimistic.State{Exists: true, ETag: now.ETag, Lineage: protocol.LineageOf(protocol.Entry{ID: s.Change.ID, Base: base.ETag})}
	case protocol.Performed:
		s.etags = nil
		return optimistic.State{Exists: true, ETag: now.ETag, Lineage: optimistic.Lineage{Operations: []protocol.Operation{{Key: s.Change.Op.Key}}}}
	case protocol.Undecided:
		return base
	case protocol.Refused:
		return optimistic.State{Exists: true, ETag: now.ETag, Lineage: protocol.LineageOf(protocol.Entry{ID: "other", Base: base.ETag})}
	}
	if base.Exists || s.Change.AnyBase {
		return optimistic.State{}
	}
	return optimistic.State{Exists: true, ETag: protocol.UnknownBase}
}

// refuse records that the submission was refused.
func (s *submission) refuse(err error) {
	conflict, ok := errors.AsType[*optimistic.ConflictError](err)
	if !ok {
		conflict = &optimistic.ConflictError{Op: s.call.Op, Resource: s.call.Resource, Err: azerr.Clean(s.answer)}
	}
	s.open = &protocol.Refusal{Change: s.Change, Conflict: conflict}
}

// member returns the member of the row, or nil if the submission does not write it.
func (s *submission) member(row string) *member {
	for _, m := range s.members {
		if m.row == row {
			return m
		}
	}
	return nil
}

// refused returns the member that a refusal concerns, and whether running the change again may help. If neither, the
// error does not concern a version.
func (s *submission) refused(err error) (failed *member, again bool) {
	_, missing := errors.AsType[*optimistic.NotFoundError](err)
	_, conflict := errors.AsType[*optimistic.ConflictError](err)
	if !missing && !conflict || azerr.Has(err, "TableNotFound") {
		return nil, false
	}
	if i := azerr.Classify(s.answer).Index; i >= 0 && i < len(s.members) {
		return s.members[i], s.members[i].read
	}
	return nil, conflict
}
