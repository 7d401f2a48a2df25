package tables

import (
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
	"github.com/azconc/azconc/pkg/wire"
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
	stamp     string            // the id in the lineages; empty if they are switched off
	witnesses []*member         // the members, the most conclusive first
	Change    protocol.Change   // the whole transaction as one write
	answer    error             // the service's last response
	lost      int               // the responses that the call had lost before
	open      *protocol.Refusal // set once the submission was refused; Judged once a look has confirmed that
	failed    *member           // the member that was refused, if it is known
	err       error             // the error of the refusal
	seen      *protocol.State   // the state of the member that failed, from the latest look
	etags     map[string]azcore.ETag
}

// plan turns the requests of the change into a submission, or nil if there is nothing to send.
func (t *transaction) plan(tx *Tx) (*submission, error) {
	s := &submission{call: t.Call, etags: map[string]azcore.ETag{}, lost: t.Res.Ambiguous}
	id := protocol.NewWriteID()
	var rows, reads []*txRow
	guarded, creates := false, false
	for _, r := range tx.order {
		switch {
		case t.guard != "" && r.row == t.guard && r.op == txNone:
		case r.op != txNone && (!r.untouched() || t.intent != protocol.Intent{}): // with an operation it is sent to remember that
			rows = append(rows, r)
			creates = creates || r.creates()
		case r.known && r.assert:
			reads = append(reads, r)
		}
	}
	if len(rows) == 0 {
		return nil, nil
	}
	for _, r := range reads {
		switch {
		case r.base.Exists:
			rows = append(rows, r)
		case t.guard == "":
			return nil, tx.fail(r, "it was read as absent and is not written, and the service cannot assert that: Insert it, Peek instead, or name a Guard")
		default:
			guarded = true
		}
	}
	if g := tx.rows[t.guard]; t.guard != "" && (guarded || creates || g.assert) && g.op == txNone {
		g.assert = true
		if !g.base.Exists {
			g.op, g.after = txInsert, Properties{}
		}
		rows = append(rows, g)
	}
	for _, r := range rows {
		if err := t.join(s, r, id); err != nil {
			return nil, tx.fail(r, err)
		}
	}
	return s, t.close(s)
}

// passed returns how many writes of others to a row were applied since this transaction first read it.
func (t *transaction) passed(r *txRow) int {
	if first, seen := t.counts[r.row]; seen && r.known {
		return r.base.Lineage.Since(first)
	}
	if r.known {
		t.counts[r.row] = r.base.Lineage
	}
	return 0
}

// untouched reports whether the writes to a row have restored what was read.
func (r *txRow) untouched() bool {
	return r.known && r.stored != nil && r.op == txReplace && maps.Equal(r.after, r.stored)
}

func (r *txRow) creates() bool { return r.op != txDelete && !r.base.Exists }

// join adds a row to the submission.
func (t *transaction) join(s *submission, r *txRow, id string) error {
	m := &member{row: r.row, read: r.known}
	m.witness = protocol.Change{Base: r.base, AnyBase: !r.known && r.op == txDelete, Remove: r.op == txDelete, Look: t.lookAt(r.row)}
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
	var lineage protocol.Lineage
	if !m.witness.Remove {
		m.witness.ID, lineage = t.StampAs(id, r.base, t.intent, t.passed(r))
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
	case !r.base.Exists:
		return aztables.TransactionTypeAdd, entityDiff{after: r.after}, true
	}
	d.before = r.stored
	if r.after == nil {
		r.after = r.stored // only asserted
	}
	if d.compare(r.stored, r.after); d.removed || r.stored == nil {
		return aztables.TransactionTypeUpdateReplace, d, true
	}
	return aztables.TransactionTypeUpdateMerge, d, false
}

func doubled(key string) string { return strings.ReplaceAll(key, "'", "''") }

func (t *transaction) lookAt(row string) func(context.Context) (protocol.State, error) {
	return func(ctx context.Context) (protocol.State, error) {
		_, state, err := readEntity(ctx, t.table, t.partition, row)
		return state, err
	}
}

// close checks the limits and makes the whole submission one write.
func (t *transaction) close(s *submission) error {
	var actions []aztables.TransactionAction
	size, inserts, pinned := 0, false, false
	for _, m := range s.members {
		actions = append(actions, m.action)
		size += len(m.action.Entity) + memberOverhead
		pinned = pinned || m.action.IfMatch != nil && *m.action.IfMatch != azcore.ETagAny
		inserts = inserts || m.action.ActionType == aztables.TransactionTypeAdd
	}
	if err := t.within(len(s.members), size); err != nil {
		return err
	}
	s.witnesses = slices.SortedStableFunc(slices.Values(s.members), func(a, b *member) int { return silence(a.witness) - silence(b.witness) })
	s.Change = protocol.Change{
		Base: s.witnesses[0].witness.Base, ID: s.stamp, AnyBase: !pinned && !inserts, Pinned: pinned, Silent: true, Look: s.look,
		Traced: s.stamp != "", Op: t.intent,
		Send: func(ctx context.Context) (azcore.ETag, error) {
			etags, err := wire.Request(ctx, "Entity Group Transaction", func(ctx context.Context) ([]azcore.ETag, error) {
				return Submit(ctx, t.table, actions)
			})
			s.answer = err
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

// within checks the limits of the service.
func (t *transaction) within(members, size int) error {
	if members > maxMembers {
		return t.Fail(fmt.Errorf("%d entities are read or written; the service takes %d in a transaction (Peek does not count)", members, maxMembers))
	}
	if size > maxTransaction {
		return t.Fail(fmt.Errorf("the entities take %d bytes; the service takes %d in a transaction", size, maxTransaction))
	}
	return nil
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
	if m := s.culprit(); m != nil {
		return m, m.read
	}
	return nil, conflict
}

// culprit returns the member that the service's last response names, or nil.
func (s *submission) culprit() *member {
	if i := azerr.Classify(s.answer).Index; i >= 0 && i < len(s.members) {
		return s.members[i]
	}
	return nil
}
