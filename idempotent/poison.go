package idempotent

import (
	"context"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore/to"
	"github.com/Azure/azure-sdk-for-go/sdk/storage/azqueue/v2"

	"github.com/azconc/azconc/idempotent/internal/format"
	"github.com/azconc/azconc/idempotent/internal/queues"
)

// bury puts a copy of a message into the poison queue, which is created if it does not exist, and where the copy never
// expires. An envelope keeps its id there, so that a second copy, made after a crash, can be detected. Facts that the
// copy cannot carry are stored with the markers, if there are any. Requests: 1, and 1 for such facts.
func bury(ctx context.Context, to *queues.Queue, markers *Markers, raw string, e format.Message, p format.Poison) error {
	p.Reason = format.Clip(p.Reason)
	text, carried := format.PoisonText(raw, e, &p)
	sent, err := to.Send(ctx, text, &azqueue.EnqueueMessageOptions{TimeToLive: forEver}, 6, true)
	if err != nil {
		return &SendError{Queue: to.Path, ID: p.MessageID, Err: err, Open: sent.Open}
	}
	if carried || markers == nil {
		return nil
	}
	_ = markers.table.KeepFacts(ctx, to.Path, sent.MessageID, p) // for display only: the message is safe without
	return nil
}

var forEver = to.Ptr(int32(-1))
