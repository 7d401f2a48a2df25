package telemetry

import (
	"context"
	"log/slog"
	"maps"
	"runtime/debug"
	"time"

	"go.opentelemetry.io/otel"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/metric"
	"go.opentelemetry.io/otel/propagation"
	"go.opentelemetry.io/otel/trace"

	"github.com/azconc/azconc/pkg/azerr"
	"github.com/azconc/azconc/pkg/observe"
)

// Scope is the name of the instrumentation scope of all spans and metrics.
const Scope = "github.com/azconc/azconc"

// Options are the options of New. The zero value is ready for use.
type Options struct {
	// TracerProvider makes the spans. Defaults to the global one of OpenTelemetry.
	TracerProvider trace.TracerProvider

	// MeterProvider makes the instruments. Defaults to the global one of OpenTelemetry.
	MeterProvider metric.MeterProvider

	// Logger receives every event, as observe.Hooks describes. Defaults to no logging.
	Logger *slog.Logger

	// Label returns the attribute azconc.resource of the metrics of changes and leases, for the path of a resource. If it returns
	// "", there is none. It must return few different values, and must be safe for concurrent use. Defaults to no attribute.
	Label func(resource string) string
}

// New returns hooks for the options of azconc's packages. One set serves a whole program, and is safe for concurrent use. New
// sends nothing. It fails only if the MeterProvider refuses an instrument.
func New(o *Options) (observe.Hooks, error) {
	if o == nil {
		o = new(Options)
	}
	t := &telemetry{label: o.Label, held: make(map[string]bool)}
	tracers, meters := o.TracerProvider, o.MeterProvider
	if tracers == nil {
		tracers = otel.GetTracerProvider()
	}
	if meters == nil {
		meters = otel.GetMeterProvider()
	}
	t.tracer = tracers.Tracer(Scope, trace.WithInstrumentationVersion(version()))
	if err := t.instruments(meters.Meter(Scope, metric.WithInstrumentationVersion(version()))); err != nil {
		return observe.Hooks{}, err
	}
	return observe.Hooks{Logger: o.Logger, Span: t.span, Event: t.event}, nil
}

// version returns the version of azconc in this program: that of the module, or of the command.
func version() string {
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return ""
	}
	for _, m := range append(info.Deps, &info.Main) {
		if m.Path == Scope || m.Path == Scope+"/cmd/azconc" {
			return m.Version
		}
	}
	return ""
}

// span begins a span, and measures what it covers.
func (t *telemetry) span(ctx context.Context, s observe.Span) (context.Context, func(error)) {
	name, kind := s.Name, trace.SpanKindInternal
	attrs := []attribute.KeyValue{attribute.String("azconc.resource", s.Resource)}
	if s.Request != nil {
		kind = trace.SpanKindClient
	}
	message, options := operationOf(s), linked(ctx, s.Message)
	if message != "" {
		attrs = append(attrs, messaging(message, s.Resource)...)
		name, kind = message+" "+s.Resource, trace.SpanKindProducer
		if message == "process" {
			// A consumer runs for weeks: in its trace nobody would find a message, and no backend keeps so long a one.
			kind, options = trace.SpanKindConsumer, append(options, trace.WithNewRoot())
		}
	}
	if m := s.Message; m != nil {
		attrs = append(attrs, attribute.String("messaging.message.id", m.ID), attribute.String("azconc.message.key", m.Key),
			attribute.Int("azconc.message.attempt", m.Attempt), attribute.Int("azconc.message.deliveries", m.Deliveries))
	}
	active := metric.WithAttributes(messaging("process", s.Resource)...)
	if message == "process" {
		t.handling.Add(ctx, 1, active)
	}
	began := time.Now()
	ctx, span := t.tracer.Start(ctx, name, append(options, trace.WithSpanKind(kind), trace.WithAttributes(attrs...), trace.WithTimestamp(began))...)
	return ctx, func(err error) {
		took := time.Since(began)
		failure := failed(err)
		if err != nil {
			span.SetStatus(codes.Error, azerr.Summary(err))
			span.SetAttributes(failure...)
		}
		span.SetAttributes(exchange(s.Request)...)
		if out := azerr.Classify(err); out.RequestID != "" {
			span.SetAttributes(attribute.String("azure.service.request.id", out.RequestID))
		}
		span.End(trace.WithTimestamp(began.Add(took)))
		t.measure(ctx, s, message, took, failure)
		if message == "process" {
			t.handling.Add(ctx, -1, active)
		}
	}
}

// measure records the duration of an operation or a request that has ended.
func (t *telemetry) measure(ctx context.Context, s observe.Span, message string, took time.Duration, failure []attribute.KeyValue) {
	duration, key := t.operation, "azconc.operation"
	if s.Request != nil {
		duration, key = t.request, "azconc.request"
	}
	duration.Record(ctx, took.Seconds(), metric.WithAttributes(append(failure, attribute.String(key, s.Name))...))
	if message == "send" {
		t.sent.Add(ctx, 1, metric.WithAttributes(append(failure, messaging(message, s.Resource)...)...))
	}
}

// exchange returns the attributes that the conventions for HTTP clients require of a request that has ended.
func exchange(r *observe.Request) (attrs []attribute.KeyValue) {
	if r != nil && r.Method != "" {
		attrs = append(attrs, attribute.String("http.request.method", r.Method),
			attribute.String("server.address", r.Host), attribute.Int("server.port", r.Port))
	}
	if r != nil && r.Status != 0 {
		attrs = append(attrs, attribute.Int("http.response.status_code", r.Status))
	}
	return attrs
}

// operationOf returns the operation of a span as the conventions for messaging name it, or "".
func operationOf(s observe.Span) string {
	if s.Request != nil {
		return ""
	}
	return map[string]string{"idempotent.Handle": "process", "idempotent.Send": "send"}[s.Name]
}

// messaging returns the attributes that the conventions for messaging require.
func messaging(operation, queue string) []attribute.KeyValue {
	return []attribute.KeyValue{
		attribute.String("messaging.system", "azure_queue_storage"),
		attribute.String("messaging.operation.name", operation),
		attribute.String("messaging.operation.type", operation),
		attribute.String("messaging.destination.name", queue),
	}
}

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
