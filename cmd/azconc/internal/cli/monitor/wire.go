package monitor

import (
	"net/http"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore/policy"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/trace"

	"github.com/azconc/azconc/pkg/azerr"
)

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
