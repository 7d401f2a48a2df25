package conformance

import (
	"context"

	"github.com/Azure/azure-sdk-for-go/sdk/storage/azqueue/v2"
)

// Queue tests pop receipts: only the latest one updates or deletes a message, and it identifies the message only
// together with its id.
func Queue(t T, h Harness) {
	q := h.Queue(t)
	send := func(text string) *azqueue.EnqueuedMessage {
		r, err := q.EnqueueMessage(t.Context(), text, nil)
		if err != nil || len(r.Messages) != 1 {
			t.Fatalf("send: %d messages, %v", len(r.Messages), err)
		}
		return r.Messages[0]
	}
	receive := func(count, seconds int32) []*azqueue.DequeuedMessage {
		r, err := q.DequeueMessages(t.Context(), &azqueue.DequeueMessagesOptions{NumberOfMessages: &count, VisibilityTimeout: &seconds})
		if err != nil {
			t.Fatal(err)
		}
		return r.Messages
	}
	update := func(id, receipt string, seconds int32) (said, string) {
		var next string
		got := call(func(ctx context.Context) error {
			r, err := q.UpdateMessage(ctx, id, receipt, "changed", &azqueue.UpdateMessageOptions{VisibilityTimeout: &seconds})
			if err == nil && r.PopReceipt != nil {
				next = *r.PopReceipt
			}
			return err
		})
		return got, next
	}
	remove := func(id, receipt string) said {
		return call(func(ctx context.Context) error { _, err := q.DeleteMessage(ctx, id, receipt, nil); return err })
	}
	ask := func(question string, e expect, got said) { e.check(t, h, question, got) }
	const noMessage said = "404 MessageNotFound"
	replaced := expect{service: noMessage, emulator: "400 PopReceiptMismatch", why: "it tells an old receipt from a message that is gone"}

	sent := send("one")
	got, second := update(*sent.MessageID, *sent.PopReceipt, 60)
	ask("update with the receipt of Put Message", expect{service: success}, got)
	ask("delete with a receipt that was replaced", replaced, remove(*sent.MessageID, *sent.PopReceipt))
	got, _ = update(*sent.MessageID, *sent.PopReceipt, 60)
	ask("update with a receipt that was replaced", replaced, got)
	ask("delete with the latest receipt", expect{service: success}, remove(*sent.MessageID, second))
	ask("delete again", expect{service: noMessage}, remove(*sent.MessageID, second))
	got, _ = update(*sent.MessageID, second, 60)
	ask("update what was deleted", expect{service: noMessage}, got)

	for _, text := range []string{"two", "three"} {
		send(text)
	}
	batch := receive(32, 60)
	if len(batch) != 2 {
		t.Fatalf("%d messages were received, want 2", len(batch))
	}
	same := func(a, b string) said {
		if a == b {
			return "one receipt"
		}
		return "a receipt each"
	}
	ask("two messages of one Get Messages have", expect{service: "one receipt"},
		same(*batch[0].PopReceipt, *batch[1].PopReceipt))
	if hidden := receive(32, 60); len(hidden) != 0 {
		t.Errorf("%d messages were received that are hidden", len(hidden))
	}
	ask("delete the first with its id and the receipt", expect{service: success}, remove(*batch[0].MessageID, *batch[0].PopReceipt))
	ask("delete the second with its id and the receipt", expect{service: success}, remove(*batch[1].MessageID, *batch[1].PopReceipt))
	if rest, err := q.GetProperties(t.Context(), nil); err != nil || *rest.ApproximateMessagesCount != 0 {
		t.Errorf("messages are left, or unknown: %v", err)
	}
}
