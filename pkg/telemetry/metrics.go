package telemetry

import (
	"context"
	"errors"
	"strings"
	"sync"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/metric"
	"go.opentelemetry.io/otel/trace"

	"github.com/azconc/azconc/pkg/azerr"
	"github.com/azconc/azconc/pkg/fence"
	"github.com/azconc/azconc/pkg/observe"
)

type telemetry struct {
	label  func(resource string) string
	tracer trace.Tracer

	operation, request, waited, renewal, margin, age, process metric.Float64Histogram

	changes, leases, messages, sent, consumed metric.Int64Counter

	holding, handling metric.Int64UpDownCounter

	mu   sync.Mutex
	held map[string]bool // by resource: an end of a lease may be reported twice, as lost and then as released
}

// The bounds of the histograms, in seconds. Those of round trips are the ones that the conventions for messaging advise.
var (
	trips = []float64{.005, .01, .025, .05, .075, .1, .25, .5, .75, 1, 2.5, 5, 7.5, 10}
	waits = []float64{.01, .05, .1, .25, .5, 1, 2.5, 5, 10, 30, 60, 300, 900, 3600}
)

func (t *telemetry) instruments(m metric.Meter) error {
	var errs []error
	histogram := func(name, text string, bounds []float64) metric.Float64Histogram {
		h, err := m.Float64Histogram(name, metric.WithUnit("s"), metric.WithDescription(text), metric.WithExplicitBucketBoundaries(bounds...))
		errs = append(errs, err)
		return h
	}
	counter := func(name, unit, text string) metric.Int64Counter {
		c, err := m.Int64Counter(name, metric.WithUnit(unit), metric.WithDescription(text))
		errs = append(errs, err)
		return c
	}
	t.operation = histogram("azconc.operation.duration", "Duration of operations, with all requests and pauses.", waits)
	t.request = histogram("azconc.request.duration", "Duration of requests to the service.", trips)
	t.waited = histogram("azconc.lease.wait.duration", "Time from the call to the acquisition of a lease or a lock.", waits)
	t.renewal = histogram("azconc.lease.renewal.duration", "Round trip of renewals of leases.", trips)
	t.margin = histogram("azconc.lease.margin", "Time that was left at a renewal until the work would have stopped.", waits)
	t.age = histogram("azconc.message.age", "Time that messages had been in the queue when they were received, by the service's clock.", waits)
	t.process = histogram("messaging.process.duration", "Duration of the handling of messages.", waits)
	t.changes = counter("azconc.change.events", "{event}", "Conflicts, lost responses and their resolution.")
	t.leases = counter("azconc.lease.events", "{event}", "What happened to leases and locks.")
	t.messages = counter("azconc.message.events", "{event}", "What happened to messages.")
	t.sent = counter("messaging.client.sent.messages", "{message}", "Messages that were sent, or could not be.")
	t.consumed = counter("messaging.client.consumed.messages", "{message}", "Deliveries of messages.")
	current := func(name, unit, text string) metric.Int64UpDownCounter {
		c, err := m.Int64UpDownCounter(name, metric.WithUnit(unit), metric.WithDescription(text))
		errs = append(errs, err)
		return c
	}
	t.holding = current("azconc.lease.held", "{lease}", "Leases and locks that this process holds.")
	t.handling = current("azconc.message.active", "{message}", "Messages that this process handles.")
	return errors.Join(errs...)
}

// event counts an event, and adds it to the current span.
func (t *telemetry) event(ctx context.Context, e observe.Event) {
	if span := trace.SpanFromContext(ctx); span.IsRecording() {
		span.AddEvent(string(e.Subject)+" "+string(e.Kind), trace.WithTimestamp(e.At), trace.WithAttributes(detail(e)...))
	}
	kind := attribute.String("azconc.event", string(e.Kind))
	switch e.Subject {
	case observe.Change:
		t.changes.Add(ctx, 1, metric.WithAttributes(t.labelled(e, kind)...))
	case observe.Lease:
		t.leases.Add(ctx, 1, metric.WithAttributes(t.labelled(e, kind)...))
		t.lease(ctx, e)
	case observe.Handled:
		t.messages.Add(ctx, 1, metric.WithAttributes(kind, attribute.String("messaging.destination.name", e.Resource)))
		t.message(ctx, e)
	}
}

func (t *telemetry) lease(ctx context.Context, e observe.Event) {
	label := metric.WithAttributes(t.labelled(e)...)
	switch e.Kind {
	case observe.Acquired:
		t.waited.Record(ctx, e.Took.Seconds(), label)
		if t.hold(e.Resource, true) {
			t.holding.Add(ctx, 1, label)
		}
	case observe.Renewed:
		t.renewal.Record(ctx, e.Took.Seconds(), label)
		t.margin.Record(ctx, e.Margin.Seconds(), label)
	case observe.Released, observe.HandedOver, observe.Lost:
		if t.hold(e.Resource, false) {
			t.holding.Add(ctx, -1, label)
		}
	}
}

func (t *telemetry) message(ctx context.Context, e observe.Event) {
	switch e.Kind {
	case observe.Received:
		t.age.Record(ctx, e.Message.Age.Seconds(), metric.WithAttributes(messaging("receive", e.Resource)...))
		t.consumed.Add(ctx, 1, metric.WithAttributes(messaging("receive", e.Resource)...))
	case observe.Completed, observe.Retried, observe.Poisoned, observe.Dropped:
		if e.Took > 0 || e.Kind == observe.Completed || e.Kind == observe.Retried { // otherwise the handler has not run
			t.process.Record(ctx, e.Took.Seconds(), metric.WithAttributes(append(failed(e.Err), messaging("process", e.Resource)...)...))
		}
	}
}

// hold notes whether a resource is held, and reports whether that is news.
func (t *telemetry) hold(resource string, held bool) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.held[resource] == held {
		return false
	}
	if held {
		t.held[resource] = true
	} else {
		delete(t.held, resource)
	}
	return true
}

func (t *telemetry) labelled(e observe.Event, attrs ...attribute.KeyValue) []attribute.KeyValue {
	if t.label != nil {
		if label := t.label(e.Resource); label != "" {
			attrs = append(attrs, attribute.String("azconc.resource", label))
		}
	}
	return attrs
}

// detail returns what an event says, for a span.
func detail(e observe.Event) []attribute.KeyValue {
	attrs := []attribute.KeyValue{attribute.String("azconc.resource", e.Resource)}
	if e.Took != 0 {
		attrs = append(attrs, attribute.Float64("azconc.took", e.Took.Seconds()))
	}
	if e.Margin != 0 {
		attrs = append(attrs, attribute.Float64("azconc.margin", e.Margin.Seconds()))
	}
	if e.Fence != 0 {
		attrs = append(attrs, attribute.Int64("azconc.fence", int64(e.Fence)))
	}
	if e.Holder != "" {
		attrs = append(attrs, attribute.String("azconc.holder", e.Holder))
	}
	if m := e.Message; m != nil {
		attrs = append(attrs, attribute.String("messaging.message.id", m.ID), attribute.String("azconc.message.key", m.Key))
	}
	if e.Err != nil {
		attrs = append(attrs, attribute.String("error.message", azerr.Summary(e.Err)))
	}
	return append(attrs, failed(e.Err)...)
}

// failed returns the attribute error.type, or nothing for a success. Its values are few, whatever the error says.
func failed(err error) []attribute.KeyValue {
	if err == nil {
		return nil
	}
	return []attribute.KeyValue{attribute.String("error.type", typeOf(err))}
}

func typeOf(err error) string {
	for _, known := range []struct {
		err  error
		name string
	}{
		// An unknown outcome is the gravest of the things that an error can be at once.
		{azerr.ErrOutcomeUnknown, "outcome_unknown"},
		{fence.ErrFenced, "fenced"},
		{azerr.ErrExists, "exists"},
		{azerr.ErrNotFound, "not_found"},
		{azerr.ErrConflict, "conflict"},
		{context.Canceled, "canceled"},
		{context.DeadlineExceeded, "timeout"},
	} {
		if errors.Is(err, known.err) {
			return known.name
		}
	}
	out := azerr.Classify(err)
	switch {
	case out.Code != "":
		return out.Code
	case out.Kind != azerr.Other:
		return strings.ReplaceAll(out.Kind.String(), " ", "_")
	}
	return "_OTHER"
}
