// Package idempotent handles queue messages so that the effect of each happens once.
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
//	}, &idempotent.ConsumerOptions{Dedupe: idempotent.DedupeInbox, Poison: poison})
//	err = consumer.Run(ctx)
//
// # What is promised
//
//	                          second delivery    sent twice     crash after the effect
//	DedupeNone                runs again         runs twice     runs again
//	Markers                   runs again         runs once      runs again, until the marker says that it ran
//	Markers and Sessions      not beside it      runs once      runs again, until the marker says that it ran
//	Inbox                     effect once        effect once    effect once
//
// A handler runs alone for its message as long as its context has not ended: the message is renewed, from before each
// request was sent, and the context ends when it cannot be.
//
// # States of a marker
//
//	claimed     a message with the key is being handled, or will be again; a copy is put back
//	            the claim ends after 5 min or twice Visibility unless it is renewed; then a copy takes its place
//	done        one was handled; copies are deleted
//	poisoned    one went to the poison queue; a copy takes its place
//
// A message that was handled is first marked done, in one transaction with others that end within 10 ms, and then deleted. After a
// crash in between it is deleted when it comes again. If the marker cannot be written, the message is deleted all the same, and
// the marker is written when the table answers; a copy that comes after a crash meanwhile is handled again.
//
// # States of a pop receipt
//
// Each renewal makes the pop receipt a new one. If the response to a renewal is lost, the new one is unknown: nobody else can
// receive the message until its time is over, but it can be neither renewed nor deleted. The handler may finish; its marker then
// says that the message was handled. That the service does not know a message under its receipt proves an earlier deletion only
// until that time.
//
// # Outages
//
// While the table of the markers or of the inbox, or the container of the sessions or of the bodies, does not answer, a Consumer
// receives nothing, and asks about a dozen times in five minutes whether it is over. What it has in hand comes back, and neither
// attempts nor MaxDeliveries count it. If the table or the container is missing or forbidden, Run returns; the table of the
// markers is created.
//
// # Messages that end their process
//
// A message of which two deliveries have ended without a word is handled alone, with no other handler beside it, and each start
// of its handler is written down before it happens. After MaxDeliveries of those it is poison.
//
// # Who is alive
//
// A message that comes back was delivered before. Its consumer may have ended, or have been slow for a moment and still work on
// it, if its handler ignores the end of its context. Sessions tell these apart: each Consumer holds the lease of a
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
