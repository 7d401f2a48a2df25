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
//	the lineage has our write                             applied
//	the ETag is still that of our base                    open: send the same request again, which is safe
//	the lineage has another write in the place of ours    not applied, and never will be: run the change again
//	the version is older than our request                 not applied, and never will be: run the change again
//	none of these                                         unknown outcome
//
// The third line is a proof for two reasons. Writes have positions: entries are dropped only at the old end, and each write
// counts one on, so a write over a base at position c is at c+1 or was never applied. And no ETag
// returns: once another ETag has been seen, no request that is still under way can satisfy its condition. The fourth line
// compares times of the service's clock, with a margin of 6 s, and never trusts a time later than the local clock's.
//
// A lineage has the last 32 writes in full. While writers contend it also has the marks of older ones, short
// hashes of their ids, as many as the contending writers need (up to about 370), so that the proof reaches over every wait. A lone
// writer's lineage has none.
//
// # Conflicts
//
// A conflict is judged in the same way even if no response was lost, because an intermediary that terminates the
// connection may deliver a request twice and pass on the refusal of the second delivery. Update reads again after a
// conflict anyway, and judges by that read. Where the lineage shows nothing, because a foreign writer has replaced it or
// the blob was deleted, the path decides: over TLS to the service's own domain, and over the loopback interface, nothing
// can have delivered the request twice, so the conflict is believed and the change runs again. On other paths (plain HTTP,
// a custom domain, a front door) the outcome is unknown. ConfirmConflicts sets that by hand.
//
// # Contention
//
// Contending writers take turns. Each estimates the number of the others from the lineage, waits until as many writes have
// been applied as there are others before it, and then reads and writes. It makes no difference whether the others are
// goroutines, clients or processes that write once.
//
// A create is an exception. If its response is lost and the resource is not there, it may have been created and deleted
// since, and sending the request again would create it twice. See Create and SendOptions.Recreate.
//
// # A busy service
//
// When the service refuses requests to a blob or a partition because there are too many (503 ServerBusy, 500
// OperationTimedOut), this process holds back those that follow, of all its clients: they leave in turn, at a rate that
// rises with time and falls with each refusal, and not before a Retry-After has passed. A call waits for one turn; its
// requests after that leave at once. Fewer than one refusal in ten, or than 4 requests a second, delay nothing. What waits is
// not sent, so a context that ends meanwhile leaves no doubt. Two accounts whose resources have the same path may delay each other once.
//
// # Limits
//
//   - A foreign writer (a writer outside azconc) removes the lineage and the operations if it replaces all metadata. A
//     write whose response was lost just then has an unknown outcome: it may have been applied and then replaced.
//   - If so many writes follow a write before azconc looks at the resource that the lineage no longer shows its place, the
//     outcome is unknown after a lost response. Without one, azconc looks in time.
//   - Where a company inspects TLS with certificates of its own, an intermediary terminates the connection unseen. So does a
//     proxy on the loopback interface. Set ConfirmConflicts to ConfirmAlways there if the proxy may repeat requests.
//   - A foreign writer that puts back metadata it read earlier, unconditionally, puts back an old lineage. This is
//     noticed if the metadata are older than our base. If they are those of our base, our write counts as not applied,
//     and the change is run again; with ConfirmAlways the outcome is unknown.
//   - Clients of one resource that are much slower than the others get fewer turns.
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
// Each function states its requests, and Result.Requests reports how many were sent. Proofs cost nothing more, with two
// exceptions of 1 look each: after a conflict if the wait is too long for the lineage, and if the context ends during such a
// wait. A new writer reads once more if other writers contend, to get its place in the order.
package optimistic
