package telemetry

import (
	"context"
	"maps"

	"go.opentelemetry.io/otel/propagation"
	"go.opentelemetry.io/otel/trace"

	"github.com/azconc/azconc/pkg/observe"
)

// Inject returns headers with the trace context of ctx added, in the form of the W3C (traceparent, tracestate). As the Headers of
// an idempotent.Outgoing they link the span of the message's handling to the span of ctx. headers may be nil and is not changed.
func Inject(ctx context.Context, headers map[string]string) map[string]string {
	injected := maps.Clone(headers)
	if injected == nil {
		injected = make(map[string]string)
	}
	propagation.TraceContext{}.Inject(ctx, propagation.MapCarrier(injected))
	return injected
}

// linked returns a link to the span in which a message was created, if the message names it. It is no parent, because a message
// may be handled several times, and long after its sender's trace has ended.
func linked(ctx context.Context, m *observe.Message) []trace.SpanStartOption {
	if m == nil {
		return nil
	}
	created := trace.SpanContextFromContext(propagation.TraceContext{}.Extract(trace.ContextWithSpanContext(ctx, trace.SpanContext{}), propagation.MapCarrier(m.Headers)))
	if !created.IsValid() {
		return nil
	}
	return []trace.SpanStartOption{trace.WithLinks(trace.Link{SpanContext: created})}
}
