package monitor

import (
	"fmt"
	"net/http"
	"os"
	"sync"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore/policy"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/trace"

	"github.com/azconc/azconc/cmd/azconc/internal/cli/fail"
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

// sink is the file of the spans. What cannot be written is dropped: telemetry does not decide how a command ends.
type sink struct {
	file *os.File

	mu     sync.Mutex
	failed error // of the first write that failed: nothing is written after it
}

// openSink opens a file for spans. A pipe is refused: a reader that stalls would hold up the requests that renew a lease.
func openSink(name string) (*sink, error) {
	if info, err := os.Stat(name); err == nil && info.Mode()&os.ModeNamedPipe != 0 {
		return nil, fail.Usagef("--trace-file %s is a pipe, whose reader could hold up the command: give a file", name)
	}
	file, err := os.OpenFile(name, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600)
	if err != nil {
		return nil, fmt.Errorf("--trace-file: %w", err)
	}
	return &sink{file: file}, nil
}

// Write writes a span. It never fails: close reports the first failure.
func (s *sink) Write(span []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.failed == nil {
		_, s.failed = s.file.Write(span)
	}
	return len(span), nil
}

// close closes the file, and says whether spans are missing in it.
func (s *sink) close() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	err := s.file.Close()
	if s.failed != nil {
		return fmt.Errorf("--trace-file: spans are missing: %w", s.failed)
	}
	return err
}
