// Package idempotent handles queue messages so that each message takes effect once.
//
// A storage queue delivers each message at least once: again if a handler was too slow or crashed, and twice if the
// response to its sender was lost. A Producer gives every message an id before it is first sent. A Consumer keeps a
// message hidden while its handler runs, and detects copies by that id. An Inbox applies the effect and records it in
// one transaction; messages that follow from it are stored in the same transaction, and sent after it: see Inbox.Send.
//
//	consumer, err := idempotent.NewConsumer(queue, func(ctx context.Context, m *idempotent.Message) error {
//		return inbox.Apply(ctx, m, "eu", func(ctx context.Context, tx *tables.Tx) error {
//			return tx.Upsert("order-17", order)
//		})
//	}, &idempotent.ConsumerOptions{Dedupe: idempotent.DedupeInbox, Poison: poison})
//	err = consumer.Run(ctx)
//
// # Guarantees
//
//	                          redelivered       sent twice     crash after the effect
//	DedupeNone                runs again         runs twice     runs again
//	Markers                   runs again         runs once      runs again, until the marker says that it ran
//	Inbox                     effect once        effect once    effect once
//
// As long as the context of a handler has not ended, no other handler runs for its message: the message is renewed, its
// time is counted from just before each request was sent, and the context ends if it cannot be renewed.
//
// # States of a marker
//
//	claimed     a message with the key is being handled, or will be again; a copy is put back, longer each time,
//	            up to 5 min
//	            the claim ends after 5 min or twice Visibility unless it is renewed, and at the latest Visibility after
//	            the message has expired; then a copy takes its place
//	done        one was handled; copies are deleted
//	poisoned    one went to the poison queue; a copy takes its place
//
// A handled message is first marked done, in one transaction with others that finish within 10 ms, and then deleted.
// After a crash in between, it is deleted when it is redelivered. If the marker cannot be written, the message is
// deleted all the same, and the marker is written when the table answers again; if the process crashes before that, a
// copy is handled again.
//
// # States of a pop receipt
//
// Each renewal replaces the pop receipt. If the response to a renewal is lost, the new receipt is unknown: nobody else
// can receive the message before its visibility timeout, but it can be neither renewed nor deleted. The handler may
// finish; the marker then records that the message was handled. If the service does not know a message under its
// receipt, this proves an earlier deletion only until that timeout.
//
// # Outages
//
// While the table of the markers or of the inbox, or the container of the message bodies, does not
// answer, a Consumer receives nothing, and probes it about a dozen times in five minutes. The messages it holds are
// redelivered, and count neither as attempts nor for MaxDeliveries. If the table or the container is missing or
// forbidden, Run returns; a missing table of the markers is created, also if the service does not free its name at once.
//
// # Messages that end their process
//
// A message of which two deliveries ended without a known outcome is suspect. Each start of its handler is recorded before it
// happens, in the message or in its marker, and after MaxDeliveries of those it is a poison message. Most suspects are innocent: they
// were handled beside the one that ended the process, or the machine was switched off, and their handlers may take long. So half of
// the handlers run suspects, others are given back for other Consumers, and the other half runs other messages. Each start without an
// outcome doubles the room that a suspect takes there, so that the group with the guilty one is halved until that one runs without
// other suspects; if that ends too, and for its last start, no other handler runs.
//
// # Large bodies
//
// With a ClaimCheck, a body that does not fit into a message is compressed, or stored in a blob:
//
//	message             send   handle
//	fits, compressed    1      1 + 1/32
//	in a blob           2      3 + 1/32
//
// # Packages
//
// Package redrive moves poison messages back, manual sends single requests, and once runs a
// function once per key.
//
// # Limits
//
//   - Messages of other SDKs carry no id: a second copy is a different message, with or without Markers.
//   - An effect outside of a table partition can happen again if the process crashes between the effect and the
//     deletion.
//   - A receive whose response is lost hides its messages for Visibility; nothing is lost, and they count as delivered.
package idempotent
