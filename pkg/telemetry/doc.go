// Package telemetry turns what azconc's hooks receive into OpenTelemetry traces and metrics.
//
//	hooks, err := telemetry.New(nil) // the global providers
//	if err != nil {
//		return err
//	}
//	_, err = optimistic.Update(ctx, state, change, &optimistic.UpdateOptions{SendOptions: optimistic.SendOptions{Hooks: hooks}})
//
// The packages optimistic, pessimistic and idempotent do not import this one: a program that does not use it links nothing of
// OpenTelemetry.
//
// # Traces
//
// An operation, such as optimistic.Update, is a span. Each request that it sends is a child, named as the REST reference names it,
// such as "Put Blob", with the attributes of the semantic conventions for HTTP clients: http.request.method, server.address,
// server.port, http.response.status_code, error.type. They are set when the request ends, too late for a sampler. Conflicts, lost
// responses and their resolution, and what happens to a lease or a message, are events of the span that is current. A message that
// is handled is a span of kind consumer, "process QUEUE", with a trace of its own; one that is sent is a span of kind producer,
// "send QUEUE". Azure Queue Storage has no properties of messages: to link the two, send the message with the headers that Inject
// returns, which travel in azconc's envelope.
//
// # Metrics
//
//	azconc.operation.duration           histogram, s   azconc.operation, error.type
//	azconc.request.duration             histogram, s   azconc.request, error.type
//	azconc.change.events                counter        azconc.event
//	azconc.lease.events                 counter        azconc.event
//	azconc.lease.held                   up-down        the leases and locks that this process holds
//	azconc.lease.wait.duration          histogram, s   from the call to the acquisition
//	azconc.lease.renewal.duration       histogram, s   round trip of a renewal
//	azconc.lease.margin                 histogram, s   time that was left at a renewal until the work would have stopped
//	azconc.message.events               counter        azconc.event, messaging.destination.name
//	azconc.message.age                  histogram, s   messaging.*; from the insertion to the receive, by the service's clock
//	azconc.message.active               up-down        messaging.*; the messages that this process handles now
//	messaging.client.sent.messages      counter        messaging.*, error.type
//	messaging.client.consumed.messages  counter        messaging.*
//	messaging.process.duration          histogram, s   messaging.*, error.type
//
// azconc.event has the values of observe.Kind. error.type is absent after a success; its values are few: "conflict", "exists",
// "not_found", "outcome_unknown", "fenced", "canceled", "timeout", an error code of the service, a kind of azerr, or "_OTHER".
//
// The names that begin with "messaging." and their attributes follow the semantic conventions for messaging, whose status is
// "development". They know no system name for Azure Queue Storage; messaging.system is "azure_queue_storage". There are no
// conventions for locks.
//
// No metric has the name of a blob, an entity, a lock or a message, because their number has no bound and the SDK of OpenTelemetry
// drops what exceeds 2,000 sets of attributes. Options.Label adds such a name where it is known to have few values.
package telemetry
