// Package monitor shows what a running command does: as spans in a file, and as metrics and health on an HTTP endpoint.
package monitor

import (
	"context"
	"errors"
	"fmt"
	"net"

	"github.com/prometheus/client_golang/prometheus"
	"go.opentelemetry.io/otel/attribute"
	otelprom "go.opentelemetry.io/otel/exporters/prometheus"
	"go.opentelemetry.io/otel/exporters/stdout/stdouttrace"
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

	file    *sink                    // nil without a file
	spans   *sdktrace.TracerProvider // nil without a file
	metrics *sdkmetric.MeterProvider // nil without an endpoint
	serving *endpoint
}

// Options say what a Monitor shows.
type Options struct {
	Command   string // such as "blob update"
	TraceFile string // a line of JSON is appended for each span; "" for none
	Address   string // of the HTTP endpoint; "" for none

	// Getenv returns variables of the environment. TRACEPARENT and TRACESTATE name the span that the command belongs to.
	Getenv func(string) string
}

// Open opens the file and the endpoint. It returns the context of the command, which Close ends nothing of.
func Open(ctx context.Context, o Options) (context.Context, *Monitor, error) {
	m := new(Monitor)
	tracers, meters := trace.TracerProvider(notrace.NewTracerProvider()), metric.MeterProvider(nometric.NewMeterProvider())
	who := resource.NewSchemaless(attribute.String("service.name", "azconc"))
	if o.TraceFile != "" {
		file, err := openSink(o.TraceFile)
		if err != nil {
			return ctx, nil, err
		}
		m.file = file
		// One write for each span, as it ends: commands can share a file, and one that is killed leaves what it has done.
		exporter, err := stdouttrace.New(stdouttrace.WithWriter(file))
		if err != nil {
			return ctx, nil, errors.Join(err, file.close())
		}
		m.spans = sdktrace.NewTracerProvider(sdktrace.WithSyncer(exporter), sdktrace.WithResource(who))
		tracers = m.spans
	}
	if o.Address != "" {
		if _, port, err := net.SplitHostPort(o.Address); err != nil || port == "" {
			return ctx, nil, errors.Join(fail.WithHint(fail.Usagef("--metrics %q is not an address", o.Address), "an address looks like 127.0.0.1:9090 or :9090"), m.Close(nil))
		}
		registry := prometheus.NewRegistry()
		exporter, err := otelprom.New(otelprom.WithRegisterer(registry), otelprom.WithoutScopeInfo(), otelprom.WithoutTargetInfo())
		if err == nil {
			m.serving, err = serve(ctx, o.Address, registry)
		}
		if err != nil {
			return ctx, nil, errors.Join(fmt.Errorf("--metrics: %w", err), m.Close(nil))
		}
		m.metrics = sdkmetric.NewMeterProvider(sdkmetric.WithReader(exporter), sdkmetric.WithResource(who))
		meters = m.metrics
	}
	hooks, err := telemetry.New(&telemetry.Options{TracerProvider: tracers, MeterProvider: meters})
	if err != nil {
		return ctx, nil, errors.Join(err, m.Close(nil))
	}
	m.hooks, m.tracer = hooks, tracers.Tracer(telemetry.Scope)
	carrier := propagation.MapCarrier{"traceparent": o.Getenv("TRACEPARENT"), "tracestate": o.Getenv("TRACESTATE")}
	ctx, m.root = m.tracer.Start(propagation.TraceContext{}.Extract(ctx, carrier), "azconc "+o.Command)
	return ctx, m, nil
}

// Hooks returns the hooks for the libraries.
func (m *Monitor) Hooks() observe.Hooks {
	if m == nil {
		return observe.Hooks{}
	}
	return m.hooks
}

// Close ends the command's span with its error, and closes the file and the endpoint.
func (m *Monitor) Close(failure error) error {
	if m == nil {
		return nil
	}
	if m.root != nil {
		end(m.root, failure)
	}
	var errs []error
	// The command's context may have ended.
	if m.spans != nil {
		errs = append(errs, m.spans.Shutdown(context.Background()))
	}
	if m.serving != nil {
		m.serving.close()
	}
	if m.metrics != nil {
		errs = append(errs, m.metrics.Shutdown(context.Background()))
	}
	if m.file != nil {
		errs = append(errs, m.file.close())
	}
	return errors.Join(errs...)
}
