// Package azwatermill is a Publisher and a Subscriber of watermill on Storage queues.
//
//	publisher, err := azwatermill.NewPublisher(queues, nil)
//	subscriber, err := azwatermill.NewSubscriber(queues, &azwatermill.SubscriberOptions{
//		ConsumerOptions: idempotent.ConsumerOptions{Markers: markers},
//	})
//
// A topic is the queue of that name, and the UUID of a message is the id by which copies are detected: a message whose response
// was lost and which was published again is delivered once more only if it was handled when its process died. See package
// idempotent for the exact promise.
//
// # Limits
//
//   - All subscribers of a topic share its messages: there are no consumer groups.
//   - There is no order.
//   - The context of a message does not travel.
//   - A message of more than 64 KiB, with its metadata, needs a ClaimCheck in the options of both sides.
package azwatermill
