// Package optimistic changes things in Azure Storage on condition that nobody else has changed them meanwhile.
//
// Update is what most callers want: it reads a value, runs a function on it, writes it back with the ETag it read as
// the condition, and starts over when somebody was faster.
//
//	res, err := optimistic.Update(ctx, optimistic.JSONBlob[Counter](client), func(ctx context.Context, c *Counter) error {
//		c.N++
//		return nil
//	}, nil)
//
// # Promise
//
// A change is applied at most once. A nil error means exactly once. ErrConflict means not at all. When neither can be
// proved, the error is ErrOutcomeUnknown, never a guess.
//
// That is less obvious than it sounds. The SDK sends a conditional write again when its answer was lost; the second
// request meets the first one's result and answers 412, which is just what a real conflict answers. A loop that then
// reads and applies its change again has applied it twice.
//
// # Lineage
//
// Every write carries a short history in the resource itself (a metadata value named LineageKey), newest first: its own
// random id with the ETag it replaced, and the entries that it read. After an unclear answer the identical request is
// sent again; it has the same condition, so it cannot be applied a second time. If that is refused, the resource is
// looked at:
//
//	our id is in the lineage                        committed
//	the ETag is still the one we wrote on           undecided: send the same again, it is harmless
//	the lineage reaches back to our base without us  not committed, and never will be: run the change again
//	none of these                                   unknown
//
// The third line is a proof for two reasons. Entries are dropped only at the old end, so an older entry without ours
// shows that ours was never applied. And the service never hands out an ETag twice, so once another one has been seen, no
// request that is still under way can meet its condition. Besides the last LineageSize writes the lineage remembers the
// first write of all and the latest write of each of 64 more clients, so that long-lived clients can prove their outcome
// after any number of writes of others. A version that is older than our request, by the service's clock, proves the same.
//
// A conflict without any sign of trouble is judged in the same way, because an intermediary may deliver a request twice
// and return the refusal of the second delivery. The read that follows a conflict anyway is what it is judged by, so this
// costs nothing but one look where the pause before that read would be too long for the lineage.
//
// # Operations
//
// An OperationID makes a change idempotent across processes. The resource remembers it under OperationsKey: the last 256
// operations of the last 7 days. It is looked for before any condition, so that a rerun is AlreadyApplied even with a
// stale If-Match. What must never be repeated, however late, belongs to package idempotent's Once.
//
// # Limits
//
//   - A writer outside azconc that replaces all metadata wipes the lineage and the operations. A write whose response was
//     lost just then, or that met it as a conflict, ends as unknown: it may have been applied and then replaced. Set
//     TrustConflicts where such writers are common and nothing repeats requests.
//   - A write that is deleted from under ends as unknown for the same reason.
//   - When more than LineageSize writes come between a write and its look, and its client has made another of them, the
//     outcome is unknown.
//   - A writer outside azconc that puts back metadata it has read earlier, without a condition, takes the lineage back.
//     That is noticed if the metadata are older than the version our write replaced. If they are of that very version,
//     our write counts as not applied, and the change is run again.
//   - A deletion leaves no trace: one that an intermediary delivers twice reads as another client's.
//   - Restoring an old version or snapshot brings back an old lineage: writes since then are gone, and count as never
//     applied.
//   - A blob that is deleted and created anew starts a new lineage. See Create and Delete for what that means.
//   - An unconditional Upload replaces the metadata whole, with the lineage and the operations in it.
//   - A server-side copy carries the lineage along with the content: an OperationID applied to the original counts as
//     applied to the copy.
//   - Conditions bind those who use them. A writer without If-Match overwrites whatever is there.
//
// # Cost
//
// Requests are exact, and Result.Requests reports them: Update 2 (read, write), 1 when nothing changes, 2 more per
// conflict; one more per read of a blob with index tags; Create, Replace and Delete 1, one more on a conflict. Proofs cost
// nothing more, except 1 look after a conflict whose pause is too long for the lineage (goroutines that share an SDK
// client and contend), and 1 when a context ends during such a pause.
package optimistic
