package monitor

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"sync"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore/policy"
	"go.opentelemetry.io/contrib/exporters/autoexport"
	"go.opentelemetry.io/otel"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	sdkmetric "go.opentelemetry.io/otel/sdk/metric"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/trace"

	"github.com/azconc/azconc/pkg/azerr"
)

// exported reports whether the environment names a collector for a signal, TRACES or METRICS
// (https://opentelemetry.io/docs/specs/otel/configuration/sdk-environment-variables). Unlike an SDK, a command sends nothing to
// localhost when nothing is said, and what prints to the console would print into its result: it does neither.
func exported(signal string, getenv func(string) string) bool {
	switch exporter := getenv("OTEL_" + signal + "_EXPORTER"); {
	case strings.EqualFold(getenv("OTEL_SDK_DISABLED"), "true"):
		return false
	case exporter != "":
		return exporter == "otlp"
	}
	return getenv("OTEL_EXPORTER_OTLP_ENDPOINT") != "" || getenv("OTEL_EXPORTER_OTLP_"+signal+"_ENDPOINT") != ""
}

// exporters returns what sends spans and metrics to the collector, by HTTP or gRPC as OTEL_EXPORTER_OTLP_PROTOCOL says.
func exporters(ctx context.Context, o Options) (spans []sdktrace.TracerProviderOption, readers []sdkmetric.Option, err error) {
	if exported("TRACES", o.Getenv) {
		exporter, failed := autoexport.NewSpanExporter(ctx)
		if failed == nil {
			spans = append(spans, sdktrace.WithBatcher(exporter))
		}
		err = failed
	}
	if exported("METRICS", o.Getenv) {
		reader, failed := autoexport.NewMetricReader(ctx)
		if failed == nil {
			readers = append(readers, sdkmetric.WithReader(reader))
		}
		err = errors.Join(err, failed)
	}
	if err != nil {
		return nil, nil, fmt.Errorf("the variables OTEL_EXPORTER_OTLP_* of the environment: %w", err)
	}
	if len(spans)+len(readers) > 0 {
		var once sync.Once
		otel.SetErrorHandler(otel.ErrorHandlerFunc(func(err error) {
			once.Do(func() {
				o.Warn("the collector that OTEL_EXPORTER_OTLP_* names: %v; the command goes on without it", err)
			})
		}))
	}
	return spans, readers, nil
}

// Do is a policy for each try of a request. Its span has the names of the conventions for HTTP, and never a query, since that is
// where a shared access signature is.
func (m *Monitor) Do(req *policy.Request) (*http.Response, error) {
	if m == nil || m.spans == nil {
		return req.Next()
	}
	raw := req.Raw()
	ctx, span := m.tracer.Start(raw.Context(), "HTTP "+raw.Method, trace.WithSpanKind(trace.SpanKindClient), trace.WithAttributes(
		attribute.String("http.request.method", raw.Method),
		attribute.String("server.address", raw.URL.Hostname()),
		attribute.String("url.path", raw.URL.EscapedPath()),
		attribute.String("az.client_request_id", raw.Header.Get("x-ms-client-request-id")),
	))
	resp, err := req.WithContext(ctx).Next()
	if resp != nil {
		span.SetAttributes(attribute.Int("http.response.status_code", resp.StatusCode),
			attribute.String("azure.service.request.id", resp.Header.Get("x-ms-request-id")))
		if code := resp.Header.Get("x-ms-error-code"); code != "" {
			span.SetAttributes(attribute.String("error.type", code))
		}
		if resp.StatusCode >= http.StatusBadRequest {
			span.SetStatus(codes.Error, "")
		}
	}
	end(span, err)
	return resp, err
}

func end(span trace.Span, err error) {
	if err != nil {
		span.SetStatus(codes.Error, azerr.Summary(err))
	}
	span.End()
}
