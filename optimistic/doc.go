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
//	our id is in the lineage                        committed; the ETag is the base of the next entry
//	the ETag is still the one we wrote on           undecided: send the same again, it is harmless
//	the lineage reaches back to our base without us  not committed, and never will be: run the change again
//	none of these                                   unknown
//
// The third line is a proof for two reasons. Entries are dropped only at the old end, so an older entry without ours
// shows that ours never was. And the service never hands out an ETag twice, so once another one has been seen, no
// request that is still under way can meet its condition.
//
// # Limits
//
//   - A writer outside azconc that replaces all metadata wipes the lineage. A write whose answer was lost just then
//     ends as unknown. The same happens when more than LineageSize writes come between a write and its probe.
//   - An intermediary that delivers one write twice, without any sign of trouble, is seen through by the lineage; if a
//     foreign writer wipes that before the next read, the second delivery's refusal reads as a conflict.
//   - Restoring an old version or snapshot brings back an old lineage: writes since then are gone, and count as never
//     applied.
//   - A blob that is deleted and created anew starts a new lineage. See Create and Delete for what that means.
//   - A server-side copy carries the lineage along with the content: an OperationID applied to the original counts as
//     applied to the copy.
//   - Conditions bind those who use them. A writer without If-Match overwrites whatever is there.
//
// # Cost
//
// Requests are exact, and Result.Requests reports them: Update 2 (read, write), 1 when nothing changes, 2 more per
// conflict; one more per read of a blob with index tags; Create, Replace and Delete 1, one more on a conflict.
package optimistic
