// Package monitor shows what a running command does: as metrics and health on an HTTP endpoint, and to a collector of OpenTelemetry.
package monitor

import (
	"context"
	"fmt"
	"net"
	"net/http"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promhttp"
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
		_, port, err := net.SplitHostPort(o.Address)
		if err == nil && port != "" {
			_, err = net.LookupPort("tcp", port)
		}
		if err != nil || port == "" {
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

// endpoint serves /metrics, /livez and /readyz.
type endpoint struct {
	server *http.Server
	at     net.Addr
	ready  atomic.Bool
	drains atomic.Bool
	done   sync.WaitGroup
}

func serve(ctx context.Context, address string, metrics prometheus.Gatherer) (*endpoint, error) {
	var config net.ListenConfig
	listener, err := config.Listen(ctx, "tcp", address)
	if err != nil {
		return nil, err
	}
	e := &endpoint{at: listener.Addr()}
	mux := http.NewServeMux()
	mux.Handle("GET /metrics", promhttp.HandlerFor(metrics, promhttp.HandlerOpts{}))
	mux.HandleFunc("GET /livez", func(w http.ResponseWriter, _ *http.Request) { fmt.Fprintln(w, "ok") })
	mux.HandleFunc("GET /readyz", func(w http.ResponseWriter, _ *http.Request) {
		if !e.ready.Load() || e.drains.Load() {
			http.Error(w, "not ready", http.StatusServiceUnavailable)
			return
		}
		fmt.Fprintln(w, "ok")
	})
	e.server = &http.Server{Handler: mux, ReadHeaderTimeout: 10 * time.Second, IdleTimeout: time.Minute, WriteTimeout: 30 * time.Second}
	e.done.Go(func() { _ = e.server.Serve(listener) })
	return e, nil
}

// close ends the requests under way: a scraper that reads slowly must not keep a command from ending.
func (e *endpoint) close() {
	_ = e.server.Close()
	e.done.Wait()
}

// Ready says whether the command is at work, which /readyz shows: it holds its lock, or receives messages.
func (m *Monitor) Ready(ready bool) {
	if m != nil && m.serving != nil {
		m.serving.ready.Store(ready)
	}
}

// Drain says that the command takes no more work: it is not ready from now on.
func (m *Monitor) Drain() {
	if m != nil && m.serving != nil {
		m.serving.drains.Store(true)
	}
}

// Receiving is a hook for spans: a consumer is ready while the service answers its receives.
func (m *Monitor) Receiving(ctx context.Context, s observe.Span) (context.Context, func(error)) {
	if s.Name != "Get Messages" {
		return ctx, nil
	}
	return ctx, func(err error) { m.Ready(err == nil) }
}

// Address returns where the endpoint listens, or "" if there is none.
func (m *Monitor) Address() string {
	if m == nil || m.serving == nil {
		return ""
	}
	return m.serving.at.String()
}
