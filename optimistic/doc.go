// Package optimistic changes blobs, entities and containers in Azure Storage on the condition that nobody else has
// changed them since they were read.
//
// Most callers want Update. It reads a value, runs a function on it, and writes the result back with the ETag it read
// as the condition. If another writer was faster, it starts over.
//
//	counter := blobs.NewJSON[Counter](client)
//	res, err := optimistic.Update(ctx, counter, func(ctx context.Context, c *Counter) error {
//		c.N++
//		return nil
//	}, nil)
//
// # Promise
//
// A change is applied at most once. A nil error means that it was applied exactly once. ErrConflict means that it was
// not applied. If neither can be proved, the error is ErrOutcomeUnknown; azconc never guesses.
//
// This is harder than it looks. When the response to a conditional write is lost, the SDK sends the request again. If
// the first request was applied, the second finds its result and fails with 412, exactly as in a real conflict. A loop
// that then reads and applies its change again has applied it twice.
//
// # Lineage
//
// Every write stores a short history in the resource, the lineage: in a blob's metadata under LineageKey, newest entry
// first. An entry is the random id of a write and the ETag of its base, the version that it replaced. A write preserves
// the entries that it read. When a response is lost, the identical request is sent again. It has the same condition, so
// it cannot be applied a second time. If it is refused, azconc looks at the resource (it reads the version and the
// lineage) and judges the write:
//
//	the lineage has our entry                             applied
//	the ETag is still that of our base                    open: send the same request again, which is safe
//	the lineage reaches back to our base, without ours    not applied, and never will be: run the change again
//	the version is older than our request                 not applied, and never will be: run the change again
//	none of these                                         unknown outcome
//
// The third line is a proof for two reasons. Entries are dropped only at the old end, so an older entry without ours
// shows that ours was never applied. And the service never issues an ETag twice: once another ETag has been seen, no
// request that is still under way can satisfy its condition. The fourth line compares times of the service's clock
// only, with a margin of 6 s.
//
// Besides its last LineageSize writes the lineage has a summary of older ones: the first write, and the latest write of
// each of 64 more clients. It proves the outcome of a long-lived client's write after any number of writes by others.
//
// A conflict is judged in the same way even if no response was lost, because an intermediary may deliver a request
// twice and pass on the refusal of the second delivery. Update reads again after a conflict anyway, and judges by that
// read. It costs one more look only if the pause before the read is so long that other writes might push the proof out
// of the lineage.
//
// A create is an exception. If its response is lost and the resource is not there, it may have been created and deleted
// since, and sending the request again would create it twice. See Create and Sending.Recreate.
//
// # Operations
//
// An OperationID makes a change idempotent across processes. The resource remembers the last 256 operations of the last
// 7 days under OperationsKey. They are checked before any condition, so a rerun succeeds with AlreadyApplied even if
// its If-Match is stale. A change that must never be repeated, however late, needs Once of package idempotent.
//
// # Limits
//
//   - A foreign writer (a writer outside azconc) removes the lineage and the operations if it replaces all metadata. A
//     write whose response was lost just then, or that met the foreign write as a conflict, has an unknown outcome: it
//     may have been applied and then replaced. So has a write that finds its resource deleted. Set TrustConflicts if
//     this is common and nothing between the client and the service repeats requests.
//   - If more than LineageSize writes follow a write before azconc looks at the resource, and one of them is by the
//     same client, the outcome is unknown.
//   - A foreign writer that puts back metadata it read earlier, unconditionally, puts back an old lineage. This is
//     noticed if the metadata are older than our base. If they are those of our base, our write counts as not applied,
//     and the change is run again.
//   - A deletion leaves no trace: if an intermediary delivers it twice, it looks like a deletion by another client.
//   - Restoring an old version or snapshot restores its lineage: later writes are gone, and count as not applied.
//   - A blob that is deleted and created again starts a new lineage. See Create and Delete for what that means.
//   - An unconditional Upload replaces all metadata, including the lineage and the operations.
//   - A server-side copy copies the lineage with the content: an OperationID that was applied to the source counts as
//     applied to the copy.
//   - Conditions bind only the writers that use them. A writer without If-Match overwrites whatever is there.
//
// # Cost
//
// Result.Requests reports exactly how many requests were sent. Update costs 2 (a read and a write), 1 if nothing
// changes, and 2 more per conflict; each read of a blob that has index tags costs 1 more. Create, Replace and Delete
// cost 1, and 1 more on a conflict. Proofs cost nothing more, with two exceptions of 1 look each: after a conflict if
// the pause is too long for the lineage (which happens when goroutines that share an SDK client contend), and if the
// context ends during such a pause.
package optimistic
