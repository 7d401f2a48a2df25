// Package idempotent has the effect of a queue message happen once.
//
// A storage queue delivers each message at least once: again when a handler was too slow or has crashed, and twice when the
// answer to its sender was lost. A Producer gives every message an id before it is first sent; a Consumer keeps a message
// hidden while its handler runs, tells copies apart by that id, and an Inbox makes the effect and the memory of it one
// transaction.
//
//	consumer, err := idempotent.NewConsumer(queue, func(ctx context.Context, m *idempotent.Message) error {
//		return inbox.Apply(ctx, m, "eu", func(ctx context.Context, tx *optimistic.Tx) error {
//			return tx.Upsert("order-17", order)
//		})
//	}, &idempotent.ConsumerOptions{Poison: poison})
//	err = consumer.Run(ctx)
//
// # What is promised
//
//	                          second delivery    sent twice     crash after the effect
//	nothing                   runs again         runs twice     runs again
//	Markers                   runs again         runs once      runs again (one request wide)
//	Markers and Sessions      not beside it      runs once      runs again (one request wide)
//	Inbox                     effect once        effect once    effect once
//
// A handler runs alone for its message as long as its context has not ended: the message is renewed, from before each
// request was sent, and the context ends when it cannot be.
//
// # States of a pop receipt
//
// Each renewal makes the pop receipt a new one. If the answer to a renewal is lost, the new one is unknown: the message is
// still ours until its time is over, but can be neither renewed nor deleted. The handler may finish; that the message is
// done is then written into its marker.
//
// # Who is alive
//
// A message that comes back was in somebody's hands. He may be dead, or have been slow for a moment and be at work on it
// still, if his handler does not mind the end of its context. Sessions tell these apart: each Consumer holds the lease of a
// blob while it runs, and the marker of a message names it.
//
//	the session that the marker names    what becomes of the message
//	has given it back, or is ours        it is handled
//	is over                              it is handled
//	lives                                it is put back for a third of Visibility, and is no attempt
//	lives, and Patience is over          it is handled, and the event says so
//
// # Large bodies
//
// A message holds 64 KiB. With a ClaimCheck, a larger body is compressed, and if that is not enough it is stored in a blob
// before the message is sent, fetched before the handler runs, and deleted when the message is:
//
//	message             send   handle
//	fits, compressed    1      1 + 1/32
//	in a blob           2      3 + 1/32
//
// # Limits
//
//   - Messages of other SDKs carry no id: a second copy of one is another message, with or without Markers.
//   - An effect outside of a table partition can happen again when the process dies between the effect and the deletion.
//   - A receive whose answer is lost hides its messages for Visibility; nothing is lost, and they count as delivered.
package idempotent
