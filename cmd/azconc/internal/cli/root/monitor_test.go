package root

import (
	"bufio"
	"context"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	tracepb "go.opentelemetry.io/proto/otlp/trace/v1"
	"google.golang.org/protobuf/proto"

	"github.com/azconc/azconc/cmd/azconc/internal/cli"
	"github.com/azconc/azconc/cmd/azconc/internal/cli/fail"
	"github.com/azconc/azconc/pkg/aztest"
)

// TestACollectorSeesEachRequestOfACommand below its operation, that below the command, and that below the span that the environment
// names.
func TestACollectorSeesEachRequestOfACommand(t *testing.T) {
	s := aztest.New(nil)
	if _, err := s.BlockBlob("jobs", "n").UploadBuffer(t.Context(), []byte(`{"n":0}`), nil); err != nil {
		t.Fatal(err)
	}
	s.Reset()
	s.SetFaults(aztest.Fault{Kind: aztest.LoseAnswer, Match: aztest.Op("Put Blob"), Count: 1})
	c := newCollector(t, http.StatusOK)
	t.Setenv("OTEL_EXPORTER_OTLP_ENDPOINT", c.URL)
	const trace = "0af7651916cd43dd8448eb211c80319c"
	env := cli.Env{"TRACEPARENT=00-" + trace + "-b7ad6b7169203331-01", "AZURE_STORAGE_CONNECTION_STRING=UseDevelopmentStorage=true", "OTEL_EXPORTER_OTLP_ENDPOINT=" + c.URL}
	if r := runOn(t.Context(), s, nil, env, "blob", "update", "jobs/n", "--jq", ".n += 1"); r.code != 0 {
		t.Fatalf("%+v", r)
	}
	byID, http, lost := map[string]*tracepb.Span{}, 0, 0
	spans := c.spans(t)
	for _, s := range spans {
		byID[string(s.SpanId)] = s
		if got := hex.EncodeToString(s.TraceId); got != trace {
			t.Errorf("%s is in the trace %s", s.Name, got)
		}
		for _, e := range s.Events {
			if e.Name == "change lost-response" {
				lost++
			}
		}
	}
	for _, s := range spans {
		if strings.HasPrefix(s.Name, "HTTP ") {
			http++
			rest := byID[string(s.ParentSpanId)]
			update := byID[string(rest.GetParentSpanId())]
			if !strings.Contains(rest.GetName(), " Blob") || update.GetName() != "optimistic.Update" || byID[string(update.ParentSpanId)].GetName() != "azconc blob update" {
				t.Errorf("%s is below %s, %s, %s", s.Name, rest.GetName(), update.GetName(), byID[string(update.GetParentSpanId())].GetName())
			}
		}
	}
	if http != s.Requests() || http < 3 || lost != 1 {
		t.Errorf("%d spans of %d requests, %d lost responses", http, s.Requests(), lost)
	}
	clear(c.received)
	r := runOn(t.Context(), s, nil, env[1:], "blob", "get", "jobs/missing")
	if r.code != 3 || !slices.ContainsFunc(c.spans(t), func(s *tracepb.Span) bool {
		return s.Name == "azconc blob get" && s.Status.GetCode() == tracepb.Status_STATUS_CODE_ERROR
	}) {
		t.Errorf("exit %d; the spans are %v", r.code, c.spans(t))
	}
}

// TestACommandThatIsRunBelongsToTheSpanInWhichItRuns: TRACEPARENT names a span of azconc's, in the trace of azconc's own TRACEPARENT.
// A message has a trace of its own.
func TestACommandThatIsRunBelongsToTheSpanInWhichItRuns(t *testing.T) {
	s := aztest.New(nil)
	for _, args := range []string{"container create jobs", "queue create orders"} {
		if r := runOn(t.Context(), s, nil, nil, strings.Fields(args)...); r.code != 0 {
			t.Fatalf("%+v", r)
		}
	}
	for range 2 {
		if _, err := s.Queue("orders").EnqueueMessage(t.Context(), "text", nil); err != nil {
			t.Fatal(err)
		}
	}
	c := newCollector(t, http.StatusOK)
	t.Setenv("OTEL_EXPORTER_OTLP_ENDPOINT", c.URL)
	const trace, parent = "0af7651916cd43dd8448eb211c80319c", "b7ad6b7169203331"
	env := cli.Env{"TRACEPARENT=00-" + trace + "-" + parent + "-01", "AZURE_STORAGE_CONNECTION_STRING=UseDevelopmentStorage=true", "OTEL_EXPORTER_OTLP_ENDPOINT=" + c.URL}
	const print = `printf '%s\n' "$TRACEPARENT"`
	for _, args := range [][]string{
		{"lock", "run", "jobs/nightly"}, {"elect", "run", "jobs/leader"}, {"semaphore", "run", "jobs/slots", "--slots", "2"}, {"once", "run", "jobs/key"},
		{"tf", "run", "jobs/state"}, {"dev", "run"},
	} {
		r := runOn(t.Context(), s, nil, env, append(args, "--", "sh", "-c", print)...)
		seen := strings.Split(strings.TrimSpace(r.out), "-")
		if len(seen) != 4 || seen[1] != trace || seen[2] == parent {
			t.Errorf("%v: %+v", args, r)
			continue
		}
		if !slices.ContainsFunc(c.spans(t), func(s *tracepb.Span) bool { return hex.EncodeToString(s.SpanId) == seen[2] }) {
			t.Errorf("%v: the collector has no span %s", args, seen[2])
		}
		clear(c.received)
	}
	r := runOn(t.Context(), s, nil, env, "queue", "consume", "orders", "--exec", print, "--dedupe", "none", "--exit-when-empty")
	traces := map[string]bool{trace: true}
	for line := range strings.Lines(r.out) {
		traces[strings.Split(line, "-")[1]] = true
	}
	if r.code != 0 || len(traces) != 3 {
		t.Errorf("two messages are in the traces %v: %+v", traces, r)
	}
}

// scrape returns the sum of the series of a metric that have all the labels.
func scrape(t *testing.T, base, name string, labels ...string) (total float64) {
	t.Helper()
	code, text := fetch(t, base+"/metrics")
	if code != http.StatusOK {
		t.Fatalf("/metrics: %d", code)
	}
	for line := range strings.Lines(text) {
		series, value, ok := strings.Cut(strings.TrimSpace(line), "} ")
		if !ok || !strings.HasPrefix(series, name+"{") {
			continue
		}
		fits := true
		for _, l := range labels {
			fits = fits && strings.Contains(series, l)
		}
		var n float64
		if _, err := fmt.Sscan(value, &n); fits && err == nil {
			total += n
		}
	}
	return total
}

func fetch(t *testing.T, url string) (int, string) {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, url, nil)
	if err != nil {
		t.Fatal(err)
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	return resp.StatusCode, string(body)
}

// serving starts a command with --metrics. It returns the address that the command prints, what a TERM does to it, and a
// function that waits for its end.
func serving(t *testing.T, s *aztest.Service, args ...string) (base string, terminate func(), wait func() ran) {
	t.Helper()
	ctx, cancel := context.WithCancelCause(t.Context())
	lines, to := io.Pipe()
	done := make(chan ran, 1)
	go func() {
		r := runOn(ctx, s, func(st *cli.Streams) { st.Err = to }, nil, args...)
		_ = to.Close()
		done <- r
	}()
	in := bufio.NewScanner(lines)
	for in.Scan() {
		if _, at, ok := strings.Cut(in.Text(), "metrics are at "); ok {
			base = strings.TrimSuffix(at, "/metrics")
			break
		}
	}
	if base == "" {
		t.Fatalf("no address: %+v", <-done)
	}
	drained := make(chan struct{})
	go func() { defer close(drained); _, _ = io.Copy(io.Discard, lines) }()
	terminate = func() { cancel(&fail.SignalError{Signal: syscall.SIGTERM}) }
	return base, terminate, func() ran {
		defer terminate()
		r := <-done
		<-drained
		http.DefaultClient.CloseIdleConnections()
		return r
	}
}

func await(t *testing.T, what string, holds func() bool) {
	t.Helper()
	for deadline := time.Now().Add(time.Minute); !holds(); <-time.After(10 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf("%s: not within a minute", what)
		}
	}
}

// TestTheMetricsOfAConsumerEqualItsHistory, under lost responses and with a handler that fails.
func TestTheMetricsOfAConsumerEqualItsHistory(t *testing.T) {
	s := aztest.New(nil)
	const n = 20
	for i := range n {
		body := func(st *cli.Streams) { st.In = strings.NewReader("x") }
		if r := runOn(t.Context(), s, body, nil, "queue", "send", "orders", "--id", fmt.Sprint("m", i), "--create", "--file", "-"); r.code != 0 {
			t.Fatalf("%+v", r)
		}
	}
	s.SetFaults(aztest.Fault{Kind: aztest.LoseAnswer, Match: aztest.Op("Delete Message"), Count: 3})
	failed := filepath.Join(t.TempDir(), "failed")
	base, terminate, wait := serving(t, s, "queue", "consume", "orders", "--metrics", "127.0.0.1:0", "--exec", "! mkdir "+failed+" 2>&-", "-o", "json")
	await(t, "all messages are handled", func() bool {
		return scrape(t, base, "azconc_message_events_total", `azconc_event="completed"`) == n
	})
	if code, _ := fetch(t, base+"/readyz"); code != http.StatusOK {
		t.Errorf("/readyz: %d", code)
	}
	if code, _ := fetch(t, base+"/livez"); code != http.StatusOK {
		t.Errorf("/livez: %d", code)
	}
	requests := scrape(t, base, "azconc_request_duration_seconds_count", `azconc_request="Delete Message"`)
	lost := scrape(t, base, "azconc_request_duration_seconds_count", `azconc_request="Delete Message"`, `error_type=`)
	got := map[string]float64{}
	for _, event := range []string{"received", "completed", "retried", "duplicate", "poisoned"} {
		got[event] = scrape(t, base, "azconc_message_events_total", `azconc_event="`+event+`"`, `messaging_destination_name="orders"`)
	}
	terminate()
	r := wait()
	var result struct{ Messages map[string]float64 }
	if err := json.Unmarshal([]byte(r.out), &result); err != nil {
		t.Fatalf("%q: %v", r.out, err)
	}
	for event, count := range got {
		if result.Messages[event] != count {
			t.Errorf("%s: scraped %v, reported %v", event, count, result.Messages[event])
		}
	}
	if got["completed"] != n || got["retried"] != 1 || lost < 3 || requests < n+3 {
		t.Errorf("%v, %v of %v deletions lost", got, lost, requests)
	}
}

// TestAConsumerThatDrainsIsNotReady, and alive: it takes no more messages, and its commands still run.
func TestAConsumerThatDrainsIsNotReady(t *testing.T) {
	s := aztest.New(nil)
	body := func(st *cli.Streams) { st.In = strings.NewReader("x") }
	if r := runOn(t.Context(), s, body, nil, "queue", "send", "orders", "--create", "--file", "-"); r.code != 0 {
		t.Fatalf("%+v", r)
	}
	begun, gate := filepath.Join(t.TempDir(), "begun"), filepath.Join(t.TempDir(), "gate")
	base, terminate, wait := serving(t, s, "queue", "consume", "orders", "--metrics", "127.0.0.1:0", "--exec", "touch "+begun+"; while ! test -e "+gate+"; do sleep 0.02; done")
	ready := func() bool { code, _ := fetch(t, base+"/readyz"); return code == http.StatusOK }
	await(t, "it is ready", ready)
	await(t, "its command runs", func() bool { _, err := os.Stat(begun); return err == nil })
	terminate()
	await(t, "it is not ready", func() bool { return !ready() })
	if code, _ := fetch(t, base+"/livez"); code != http.StatusOK {
		t.Errorf("/livez: %d", code)
	}
	if err := os.WriteFile(gate, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if r := wait(); r.code != 0 {
		t.Errorf("%+v", r)
	}
}

// TestAHolderIsReadyWhileItHoldsTheLock, and alive while it waits: a probe must not kill it for waiting.
func TestAHolderIsReadyWhileItHoldsTheLock(t *testing.T) {
	s := aztest.New(nil)
	if _, err := s.Container("jobs").Create(t.Context(), nil); err != nil {
		t.Fatal(err)
	}
	gate := filepath.Join(t.TempDir(), "gate")
	run := []string{"lock", "run", "jobs/l", "--metrics", "127.0.0.1:0", "--", "sh", "-c"}
	ready := func(base string) bool { code, _ := fetch(t, base+"/readyz"); return code == http.StatusOK }
	first, _, waitFirst := serving(t, s, append(run, "while ! test -e "+gate+"; do sleep 0.02; done")...)
	await(t, "the first is ready", func() bool { return ready(first) })
	if _, text := fetch(t, first+"/metrics"); !strings.Contains(text, "\nazconc_lease_held 1\n") {
		t.Errorf("azconc_lease_held is not 1:\n%s", text)
	}
	second, _, waitSecond := serving(t, s, append(run, "true")...)
	if code, _ := fetch(t, second+"/livez"); code != http.StatusOK || ready(second) {
		t.Errorf("while it waits: /livez %d, ready %t", code, ready(second))
	}
	if err := os.WriteFile(gate, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	for _, wait := range []func() ran{waitFirst, waitSecond} {
		if r := wait(); r.code != 0 {
			t.Errorf("%+v", r)
		}
	}
}

func TestAnAddressThatCannotBeServedIsNamed(t *testing.T) {
	r := runOn(t.Context(), aztest.New(nil), nil, nil, "lock", "run", "jobs/l", "--metrics", "127.0.0.1:http-but-not", "--", "true")
	if r.code == 0 || !strings.Contains(r.stderr, "--metrics") {
		t.Errorf("%+v", r)
	}
}

// collector keeps what is sent to it.
type collector struct {
	*httptest.Server
	mu       sync.Mutex
	received map[string]string // by path
}

func newCollector(t *testing.T, status int) *collector {
	c := &collector{received: make(map[string]string)}
	c.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		c.mu.Lock()
		c.received[r.URL.Path] += string(body)
		c.mu.Unlock()
		w.WriteHeader(status)
	}))
	t.Cleanup(c.Close)
	return c
}

// spans returns those that have been received.
func (c *collector) spans(t *testing.T) (all []*tracepb.Span) {
	t.Helper()
	var received tracepb.TracesData // the form of an export request, too
	if err := proto.Unmarshal([]byte(c.received["/v1/traces"]), &received); err != nil {
		t.Fatal(err)
	}
	for _, r := range received.ResourceSpans {
		for _, scope := range r.ScopeSpans {
			all = append(all, scope.Spans...)
		}
	}
	return all
}

// TestACollectorOfTheEnvironmentReceivesSpansAndMetrics, also those of a short command, and none when the environment says so.
func TestACollectorOfTheEnvironmentReceivesSpansAndMetrics(t *testing.T) {
	s := aztest.New(nil)
	if _, err := s.BlockBlob("jobs", "n").UploadBuffer(t.Context(), []byte(`{"n":0}`), nil); err != nil {
		t.Fatal(err)
	}
	c := newCollector(t, http.StatusOK)
	set := func(name, value string) string { t.Setenv(name, value); return name + "=" + value } // the exporters read the process's own
	env := cli.Env{"AZURE_STORAGE_CONNECTION_STRING=UseDevelopmentStorage=true", set("OTEL_EXPORTER_OTLP_ENDPOINT", c.URL), set("OTEL_SERVICE_NAME", "payroll")}
	r := runOn(t.Context(), s, nil, env, "blob", "update", "jobs/n", "--exec", `printf '"%s"' "$TRACEPARENT"`)
	if r.code != 0 || r.stderr != "" {
		t.Fatalf("%+v", r)
	}
	if n := runOn(t.Context(), s, nil, env, "blob", "get", "jobs/n"); !regexp.MustCompile(`^"00-[0-9a-f]{32}-[0-9a-f]{16}-01"$`).MatchString(n.out) {
		t.Errorf("the command saw TRACEPARENT=%s", n.out)
	}
	for path, words := range map[string][]string{"/v1/traces": {"azconc blob update", "optimistic.Update", "HTTP PUT", "payroll"}, "/v1/metrics": {"azconc.operation.duration", "payroll"}} {
		for _, word := range words {
			if !strings.Contains(c.received[path], word) {
				t.Errorf("%s lacks %q", path, word)
			}
		}
	}
	clear(c.received)
	for _, none := range []cli.Env{{"OTEL_SDK_DISABLED=true"}, {"OTEL_TRACES_EXPORTER=none", "OTEL_METRICS_EXPORTER=console"}} {
		if r := runOn(t.Context(), s, nil, append(none, env...), "blob", "get", "jobs/n"); r.code != 0 || len(c.received) > 0 {
			t.Errorf("%v: %+v, and %d kinds of telemetry are sent", none, r, len(c.received))
		}
	}
}

// TestACollectorThatRefusesDoesNotDecideHowACommandEnds.
func TestACollectorThatRefusesDoesNotDecideHowACommandEnds(t *testing.T) {
	s := aztest.New(nil)
	if _, err := s.BlockBlob("jobs", "n").UploadBuffer(t.Context(), []byte(`{"n":0}`), nil); err != nil {
		t.Fatal(err)
	}
	c := newCollector(t, http.StatusForbidden)
	t.Setenv("OTEL_EXPORTER_OTLP_ENDPOINT", c.URL)
	env := cli.Env{"AZURE_STORAGE_CONNECTION_STRING=UseDevelopmentStorage=true", "OTEL_EXPORTER_OTLP_ENDPOINT=" + c.URL}
	r := runOn(t.Context(), s, nil, env, "blob", "get", "jobs/n")
	if r.code != 0 || r.out != `{"n":0}` || strings.Count(r.stderr, "OTEL_EXPORTER_OTLP_") != 1 {
		t.Errorf("%+v", r)
	}
	t.Setenv("OTEL_EXPORTER_OTLP_PROTOCOL", "carrier pigeon")
	if r := runOn(t.Context(), s, nil, env, "blob", "get", "jobs/n"); r.code == 0 || !strings.Contains(r.stderr, "OTEL_EXPORTER_OTLP_") {
		t.Errorf("%+v", r)
	}
}

// TestACollectorThatDoesNotAnswerIsLeft when the command has ended: it would have held the command for ever.
func TestACollectorThatDoesNotAnswerIsLeft(t *testing.T) {
	c := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body)
		<-r.Context().Done()
	}))
	defer c.Close()
	defer c.CloseClientConnections() // a process would have ended with them
	t.Setenv("OTEL_EXPORTER_OTLP_ENDPOINT", c.URL)
	r := runOn(t.Context(), aztest.New(nil), nil, cli.Env{"OTEL_EXPORTER_OTLP_ENDPOINT=" + c.URL}, "version")
	if r.code != 0 || !strings.Contains(r.out, "azconc ") || strings.Count(r.stderr, "\n") != 1 || !strings.Contains(r.stderr, "goes on without it") {
		t.Errorf("%+v", r)
	}
}
