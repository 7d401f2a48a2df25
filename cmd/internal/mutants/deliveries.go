package main

// ofDeliveries are mistakes about the time for which a message is held, and about the sessions of those that hold one: package
// idempotent.
var ofDeliveries = []mutant{
	{
		name: "an idle consumer is not woken by a producer of its process",
		file: "idempotent/receive.go",
		old:  "	case <-c.wake:\n",
		new:  "",
		pkg:  "./idempotent", run: "TestAWokenConsumerPollsAtOnce",
	},
	{
		name: "the pause of an idle consumer goes on growing beyond its bound",
		file: "idempotent/receive.go",
		old:  "Base: c.o.Poll.Base, Cap: c.o.Poll.Cap, Rand",
		new:  "Base: c.o.Poll.Base, Cap: 6 * c.o.Poll.Cap, Rand",
		pkg:  "./idempotent", run: "TestAMessageToAnIdleConsumerWaitsAtMostFiveSeconds",
	},
	{
		name: "the renewal of a message is timed from the response",
		file: "idempotent/internal/queues/receipt.go",
		old:  "ptr.Value(resp.PopReceipt), u.began.Add(d),",
		new:  "ptr.Value(resp.PopReceipt), time.Now().Add(d),",
		pkg:  "./idempotent", run: "TestTheTimeOfAMessageIsCountedFromTheRequest",
	},
	{
		name: "the time of a received message is counted from the response",
		file: "idempotent/receive.go",
		old:  "c.take(m, began, window)",
		new:  "c.take(m, began.Add(time.Since(began)), window)",
		pkg:  "./idempotent", run: "TestTheTimeOfAMessageIsCountedFromTheRequest",
	},
	{
		name: "a session that cannot be asked counts as over",
		file: "idempotent/session.go",
		old:  "case err == nil && seen.State.Free(), send.NoSuchBlob(err):",
		new:  "case err != nil || seen.State.Free():",
		pkg:  "./idempotent", run: "TestEveryFaultAtEveryRequestOfOneThatWaits",
	},
	{
		name: "a session that is alive is waited for without an end",
		file: "idempotent/session.go",
		old:  "case d.at.Sub(m.Awaited) >= by.looks.of.o.Patience:",
		new:  "case m.Awaited.IsZero():",
		pkg:  "./idempotent", run: "TestPatienceWithASessionThatLivesHasAnEnd",
	},
	{
		name: "a message that was given back is waited for",
		file: "idempotent/session.go",
		old:  "given := m.Freed == m.Delivery || mine &&",
		new:  "given := mine && false && m.Delivery > 0 &&",
		pkg:  "./idempotent", run: "TestWhatIsGivenBackIsNotWaitedFor",
	},
	{
		name: "waiting for a session counts for MaxDeliveries",
		file: "idempotent/session.go",
		old:  "d.waited = m.Waited + max(0, d.m.Deliveries-m.Delivery-1)",
		new:  "d.waited = 0",
		pkg:  "./idempotent", run: "TestASessionKeepsOthers|TestAHandlerThatGoesOnIsWaitedForAndItsMessageIsHandledOnce|TestPatience|TestADeadHolder",
	},
	{
		name: "a session ends before its handlers have returned",
		file: "idempotent/consumer.go",
		old:  "go func() { <-done; c.finish(ctx) }()",
		new:  "go func() { c.finish(ctx); <-done }()",
		pkg:  "./idempotent", run: "TestWhatIsStuckIsNotTakenOver",
	},
	{
		name: "a body is overwritten without a condition when the ETag is missing",
		file: "idempotent/internal/bodies/store.go",
		old:  "if ptr.Value(there.ETag) == \"\" {",
		new:  "if false {",
		pkg:  "./idempotent", run: "TestABodyIsNotOverwrittenWithoutACondition",
	},
	{
		name: "a leased body counts as missing",
		file: "idempotent/internal/bodies/store.go",
		old:  " || out.Code == \"LeaseIdMissing\"",
		new:  "",
		pkg:  "./idempotent", run: "TestALeasedBodyIsThere",
	},
	{
		name: "an extension without the policy is sent with its receipt",
		file: "idempotent/internal/queues/receipt.go",
		old:  "special.pop, pop = pop, standIn",
		new:  "special.pop = pop",
		pkg:  "./idempotent/manual", run: "TestWithoutThePolicyNothingIsWiped",
	},
	{
		name: "a pop receipt that is not current is bad input",
		file: "idempotent/internal/queues/receipt.go",
		old:  "u.open.IsZero() || !Invalid(f.Outcome)) {",
		new:  "u.open.IsZero() || f.Err != nil) {",
		pkg:  "./idempotent", run: "TestARefusedReceiptOfAConsumerMeansThatItsMessageIsLost",
	},
	{
		name: "a body that does not decode is tried again",
		file: "idempotent/payload.go",
		old:  "return Poison(fmt.Errorf(",
		new:  "return (fmt.Errorf(",
		pkg:  "./idempotent", run: "TestABodyThatDoesNotDecodeIsPoisonAtOnce",
	},
}
