// Package monitor shows what a running command does: as metrics and health on an HTTP endpoint, and to a collector of OpenTelemetry.
package monitor

import (
	"context"
	"fmt"
	"net"
	"slices"
	"strings"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"go.opentelemetry.io/otel"
	"go.opentelemetry.io/otel/attribute"
	otelprom "go.opentelemetry.io/otel/exporters/prometheus"
	"go.opentelemetry.io/otel/metric"
	nometric "go.opentelemetry.io/otel/metric/noop"
	"go.opentelemetry.io/otel/propagation"
	sdkmetric "go.opentelemetry.io/otel/sdk/metric"
	"go.opentelemetry.io/otel/sdk/resource"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/trace"
	notrace "go.opentelemetry.io/otel/trace/noop"

	"github.com/azconc/azconc/cmd/azconc/internal/cli/fail"
	"github.com/azconc/azconc/pkg/observe"
	"github.com/azconc/azconc/pkg/telemetry"
)

// Monitor follows one command. A nil Monitor follows nothing. Its methods are safe for concurrent use.
type Monitor struct {
	hooks  observe.Hooks
	tracer trace.Tracer
	root   trace.Span

	spans   *sdktrace.TracerProvider // nil without a collector
	metrics *sdkmetric.MeterProvider // nil without an endpoint and a collector
	serving *endpoint                // nil without an address
}

// Options say what a Monitor shows.
type Options struct {
	Command string // such as "blob update"
	Address string // of the HTTP endpoint; "" for none

	// Getenv returns variables of the environment. TRACEPARENT and TRACESTATE name the span that the command belongs to; those of
	// OpenTelemetry name a collector.
	Getenv func(string) string
	Warn   func(format string, args ...any) // says once what the collector refuses
}

// Needed reports whether there is anything to show.
func (o *Options) Needed() bool {
	return o.Address != "" || exported("TRACES", o.Getenv) || exported("METRICS", o.Getenv)
}

// Open opens the endpoint and the exporters. It returns the context of the command, which Close ends nothing of.
func Open(ctx context.Context, o Options) (_ context.Context, _ *Monitor, err error) {
	m := new(Monitor)
	defer func() {
		if err != nil {
			m.Close(nil)
		}
	}()
	spans, readers, err := exporters(ctx, o)
	if err != nil {
		return ctx, nil, err
	}
	if o.Address != "" {
		if _, port, err := net.SplitHostPort(o.Address); err != nil || port == "" {
			return ctx, nil, fail.WithHint(fail.Usagef("--metrics %q is not an address", o.Address), "an address looks like 127.0.0.1:9090 or :9090")
		}
		registry := prometheus.NewRegistry()
		exporter, err := otelprom.New(otelprom.WithRegisterer(registry), otelprom.WithoutScopeInfo(), otelprom.WithoutTargetInfo())
		if err == nil {
			m.serving, err = serve(ctx, o.Address, registry)
		}
		if err != nil {
			return ctx, nil, fmt.Errorf("--metrics: %w", err)
		}
		readers = append(readers, sdkmetric.WithReader(exporter))
	}
	tracers, meters := trace.TracerProvider(notrace.NewTracerProvider()), metric.MeterProvider(nometric.NewMeterProvider())
	who, err := resource.New(ctx, resource.WithAttributes(attribute.String("service.name", "azconc")), resource.WithFromEnv())
	if err != nil {
		return ctx, nil, fmt.Errorf("OTEL_RESOURCE_ATTRIBUTES: %w", err)
	}
	if len(spans) > 0 {
		m.spans = sdktrace.NewTracerProvider(append(spans, sdktrace.WithResource(who))...)
		tracers = m.spans
	}
	if len(readers) > 0 {
		m.metrics = sdkmetric.NewMeterProvider(append(readers, sdkmetric.WithResource(who))...)
		meters = m.metrics
	}
	if m.hooks, err = telemetry.New(&telemetry.Options{TracerProvider: tracers, MeterProvider: meters}); err != nil {
		return ctx, nil, err
	}
	m.tracer = tracers.Tracer(telemetry.Scope)
	carrier := propagation.MapCarrier{"traceparent": o.Getenv("TRACEPARENT"), "tracestate": o.Getenv("TRACESTATE")}
	ctx, m.root = m.tracer.Start(propagation.TraceContext{}.Extract(ctx, carrier), "azconc "+o.Command)
	return ctx, m, nil
}

// Environ returns env with the span of ctx, if it has one, as the parent of the spans that a child process makes.
func Environ(ctx context.Context, env []string) []string {
	env = slices.Clip(env)
	for name, value := range telemetry.Inject(ctx, nil) {
		env = append(env, strings.ToUpper(name)+"="+value)
	}
	return env
}

// Hooks returns the hooks for the libraries.
func (m *Monitor) Hooks() observe.Hooks {
	if m == nil {
		return observe.Hooks{}
	}
	return m.hooks
}

// farewell bounds what a collector that does not answer adds to a command.
const farewell = 5 * time.Second

// Close ends the command's span with its error, sends what is left to the collector, and closes the endpoint. What cannot be sent is a
// warning: telemetry does not decide how a command ends.
func (m *Monitor) Close(failure error) {
	if m == nil {
		return
	}
	if m.root != nil {
		end(m.root, failure)
	}
	ctx, cancel := context.WithTimeout(context.Background(), farewell) // the command's context may have ended
	defer cancel()
	if m.spans != nil {
		if err := m.spans.Shutdown(ctx); err != nil {
			otel.Handle(err)
		}
	}
	if m.serving != nil {
		m.serving.close()
	}
	if m.metrics != nil {
		if err := m.metrics.Shutdown(ctx); err != nil {
			otel.Handle(err)
		}
	}
}
