package tables

import (
	"context"
	"slices"

	"github.com/azconc/azconc/optimistic/internal/protocol"
	"github.com/azconc/azconc/pkg/fence"
)

// silence ranks a write by how little its entity proves afterwards: 0 is the update of a version, 1 an insert, 2 the deletion of
// a version, and 3 that of any.
func silence(w protocol.Change) int {
	switch {
	case w.AnyBase:
		return 3
	case w.Remove:
		return 2
	case !w.Base.Exists:
		return 1
	}
	return 0
}

// weak reports whether the entity of m can prove the submission applied, but not the contrary, because it was to be
// inserted: if it is absent, or another client's, ours may have been there and deleted since, like a job that was consumed
// and put again. A version is replaced only once, so an entity with one proves both. A submission that updates no version has
// no such entity, and the limit of Create holds for it.
func (s *submission) weak(m *member) bool {
	return silence(m.witness) == 1 && s.has(0)
}

// has reports whether some member has that silence.
func (s *submission) has(silent int) bool {
	return slices.ContainsFunc(s.members, func(m *member) bool { return silence(m.witness) == silent })
}

// ambiguous reports whether a response to the submission was lost.
func (s *submission) ambiguous() bool { return s.call.Res.Ambiguous > s.lost }

// look looks at the entities one after the other. The submission is carried out as a whole or not at all, so the first
// entity that proves it applied, or proves that it never can be, decides for all. An unchanged entity shows that nothing
// has happened so far, which decides too if no response was lost.
func (s *submission) look(ctx context.Context) (protocol.State, error) {
	gone := 0
	fate, reason := protocol.Unprovable, "nothing in the entities shows whether it was applied"
	for _, m := range s.asked() {
		now, err := m.witness.Look(ctx)
		if err != nil {
			return protocol.State{}, err
		}
		if m == s.culprit() {
			s.seen = &now
		}
		switch f, why := s.call.Judge(m.witness, now); {
		case f == protocol.Committed && m.witness.Remove: // an unconditional deletion: the entity is gone, no matter who deleted it
			gone++
		case f == protocol.Committed, f == protocol.Performed, f == protocol.Refused && !s.weak(m):
			return s.proof(f, now, ""), nil
		case f == protocol.Undecided && !m.witness.AnyBase && !s.weak(m):
			if fate, reason = f, why; !s.ambiguous() {
				return s.proof(fate, protocol.State{}, reason), nil
			}
		}
	}
	if fate == protocol.Unprovable && gone == len(s.members) {
		fate = protocol.Committed // the submission does nothing else
	}
	return s.proof(fate, protocol.State{}, reason), nil
}

// asked returns the members in the order in which look visits them: first the one that failed, which names the conflict
// and mostly decides. After a lost response an insert may have failed because of the submission itself, or of what
// followed it, so the entities with a version are asked before it.
func (s *submission) asked() []*member {
	first := s.culprit()
	if first == nil || first.witness.Remove || s.ambiguous() && s.weak(first) {
		return s.witnesses
	}
	rest := slices.DeleteFunc(slices.Clone(s.witnesses), func(m *member) bool { return m == first })
	return append([]*member{first}, rest...)
}

// proof returns a state that shows the fate of the whole submission.
func (s *submission) proof(f protocol.Fate, now protocol.State, why string) protocol.State {
	if f == protocol.Committed || f == protocol.Performed {
		s.etags = nil // the versions that were found may be later ones
	}
	return protocol.State{Exists: true, ETag: now.ETag}.Decide(f, why)
}

// FenceRow is the row that stores the latest fence in every partition that is written under a lock.
const FenceRow = fence.Key

// fenceEntity is the entity in FenceRow.
type fenceEntity struct {
	Fence int64 `json:"azconcfence"`
}

// claim makes a transaction fenced: it asserts that no later holder has written, and stores the holder's fence if it is
// not yet stored in this partition.
func (tx *Tx) claim(ctx context.Context, holder fence.Holder) error {
	var stored fenceEntity
	if _, err := tx.Get(ctx, FenceRow, &stored); err != nil {
		return err
	}
	mine := holder.Fence()
	if err := mine.Admit(tx.t.Resource, fence.Token(stored.Fence)); err != nil {
		return err
	}
	if fence.Token(stored.Fence) == mine {
		return nil
	}
	return tx.Upsert(FenceRow, fenceEntity{int64(mine)})
}
