package telemetry_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"go.opentelemetry.io/otel/attribute"
	sdkmetric "go.opentelemetry.io/otel/sdk/metric"
	"go.opentelemetry.io/otel/sdk/metric/metricdata"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/sdk/trace/tracetest"
	"go.opentelemetry.io/otel/trace"
	"go.uber.org/goleak"

	"github.com/azconc/azconc/idempotent"
	"github.com/azconc/azconc/optimistic"
	"github.com/azconc/azconc/optimistic/blobs"
	"github.com/azconc/azconc/pessimistic"
	"github.com/azconc/azconc/pkg/aztest"
	"github.com/azconc/azconc/pkg/aztest/bubble"
	"github.com/azconc/azconc/pkg/observe"
	"github.com/azconc/azconc/pkg/telemetry"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// collected is a program's telemetry: hooks, with what they have made so far.
type collected struct {
	observe.Hooks
	t      *testing.T
	spans  *tracetest.InMemoryExporter
	reader *sdkmetric.ManualReader
}

func collect(t *testing.T, label func(string) string) *collected {
	c := &collected{t: t, spans: tracetest.NewInMemoryExporter(), reader: sdkmetric.NewManualReader()}
	hooks, err := telemetry.New(&telemetry.Options{
		TracerProvider: sdktrace.NewTracerProvider(sdktrace.WithSyncer(c.spans)),
		MeterProvider:  sdkmetric.NewMeterProvider(sdkmetric.WithReader(c.reader)),
		Label:          label,
	})
	if err != nil {
		t.Fatal(err)
	}
	c.Hooks = hooks
	return c
}

// sum returns the total of a counter, or the number of values of a histogram, over the series that have all the attributes.
func (c *collected) sum(name string, attrs ...string) (total int64) {
	var rm metricdata.ResourceMetrics
	if err := c.reader.Collect(c.t.Context(), &rm); err != nil {
		c.t.Fatal(err)
	}
	fits := func(set attribute.Set) bool {
		for i := 0; i < len(attrs); i += 2 {
			if v, ok := set.Value(attribute.Key(attrs[i])); !ok || v.Emit() != attrs[i+1] {
				return false
			}
		}
		return true
	}
	for _, scope := range rm.ScopeMetrics {
		for _, m := range scope.Metrics {
			if m.Name != name {
				continue
			}
			switch data := m.Data.(type) {
			case metricdata.Sum[int64]:
				for _, p := range data.DataPoints {
					if fits(p.Attributes) {
						total += p.Value
					}
				}
			case metricdata.Histogram[float64]:
				for _, p := range data.DataPoints {
					if fits(p.Attributes) {
						total += int64(p.Count)
					}
				}
			}
		}
	}
	return total
}

func (c *collected) check(want int64, name string, attrs ...string) {
	c.t.Helper()
	if got := c.sum(name, attrs...); got != want {
		c.t.Errorf("%s%v is %d, want %d", name, attrs, got, want)
	}
}

type counter struct {
	N int `json:"n"`
}

func increment(_ context.Context, c *counter) error { c.N++; return nil }

// TestTheCountersOfAStormEqualItsHistory: what callers, handlers and the service have seen is what the metrics say.
func TestTheCountersOfAStormEqualItsHistory(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := aztest.New(&aztest.Options{Latency: func() time.Duration { return 4*time.Millisecond + rand.N(2*time.Millisecond) }})
		c := collect(t, nil)
		blob := s.BlockBlob("box", "n")
		if _, err := blob.UploadBuffer(t.Context(), []byte(`{"n":0}`), nil); err != nil {
			t.Fatal(err)
		}
		s.Reset()
		s.SetFaults(aztest.Fault{Kind: aztest.LoseAnswer, Match: aztest.Op("Put Blob"), Probability: 0.2})
		var mu sync.Mutex
		var conflicts, lost, requests int64
		var wg sync.WaitGroup
		const clients, changes = 6, 10
		for range clients {
			wg.Go(func() {
				for range changes {
					res, err := optimistic.Update(t.Context(), blobs.NewJSON[counter](blob), increment, &optimistic.UpdateOptions{
						SendOptions: optimistic.SendOptions{Hooks: c.Hooks}})
					if err != nil {
						t.Error(err)
					}
					mu.Lock()
					conflicts, lost, requests = conflicts+int64(res.Conflicts), lost+int64(res.Ambiguous), requests+int64(res.Requests)
					mu.Unlock()
				}
			})
		}
		wg.Wait()
		if conflicts == 0 || lost == 0 || int(requests) != s.Requests() {
			t.Fatalf("%d conflicts, %d lost responses, %d requests of %d: nothing to see", conflicts, lost, requests, s.Requests())
		}
		c.check(clients*changes, "azconc.operation.duration", "azconc.operation", "optimistic.Update")
		c.check(requests, "azconc.request.duration")
		c.check(conflicts, "azconc.change.events", "azconc.event", "conflict")
		c.check(lost, "azconc.change.events", "azconc.event", "lost-response")

		operations, children, events := 0, 0, map[string]int64{}
		for _, span := range c.spans.GetSpans() {
			if span.SpanKind == trace.SpanKindClient {
				children++
				if !span.Parent.IsValid() {
					t.Errorf("%s has no parent", span.Name)
				}
			} else {
				operations++
			}
			for _, e := range span.Events {
				events[e.Name]++
			}
		}
		if operations != clients*changes || children != int(requests) || events["change conflict"] != conflicts || events["change lost-response"] != lost {
			t.Errorf("%d operations, %d requests, events %v", operations, children, events)
		}
	})
}

// TestARequestHasTheAttributesOfTheConventions also if its response is lost, or if there is nobody who could respond.
func TestARequestHasTheAttributesOfTheConventions(t *testing.T) {
	s := aztest.New(nil)
	c := collect(t, nil)
	blob := s.BlockBlob("box", "n")
	if _, err := blob.UploadBuffer(t.Context(), []byte(`{"n":0}`), nil); err != nil {
		t.Fatal(err)
	}
	for _, fault := range []aztest.Fault{
		{},
		{Kind: aztest.Refuse, Match: aztest.Op("Get Blob"), Count: 1},
		{Kind: aztest.LoseAnswer, Match: aztest.Op("Get Blob"), Count: 1},
		{Kind: aztest.Answer, Match: aztest.Op("Get Blob"), Status: 403, Code: "AuthorizationFailure"},
	} {
		if s.SetFaults(); fault.Kind != "" {
			s.SetFaults(fault)
		}
		_, _ = optimistic.Read(t.Context(), blobs.NewJSON[counter](blob), &optimistic.ReadOptions{SendOptions: optimistic.SendOptions{Hooks: c.Hooks, Tries: 1}})
	}
	var got []string
	for _, span := range c.spans.GetSpans() {
		if set := attribute.NewSet(span.Attributes...); span.SpanKind == trace.SpanKindClient {
			line := span.Name
			for _, key := range []attribute.Key{"http.request.method", "server.address", "server.port", "http.response.status_code", "error.type"} {
				value, _ := set.Value(key)
				line += " " + value.Emit()
			}
			got = append(got, line)
		}
	}
	want := []string{
		"Get Blob GET 127.0.0.1 10000 200 ",
		"Get Blob GET 127.0.0.1 10000  unreachable",
		"Get Blob GET 127.0.0.1 10000  unknown",
		"Get Blob GET 127.0.0.1 10000 403 AuthorizationFailure",
	}
	if !slices.Equal(got, want) {
		t.Errorf("requests are described as\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
}

func TestMessagesAreCountedAsTheConventionsSay(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := aztest.New(nil)
		c := collect(t, nil)
		queue := s.Queue("orders")
		producer, err := idempotent.NewProducer(queue, &idempotent.ProducerOptions{Hooks: c.Hooks})
		if err != nil {
			t.Fatal(err)
		}
		const n = 5
		ctx, end := c.Span(t.Context(), observe.Span{Name: "shop.Order"})
		for i := range n {
			if _, err := producer.Send(t.Context(), idempotent.Outgoing{ID: fmt.Sprint("m", i), Body: []byte("x"), Headers: telemetry.Inject(ctx, nil)}); err != nil {
				t.Fatal(err)
			}
		}
		end(nil)
		var mu sync.Mutex
		runs := map[string]int{}
		consumer, err := idempotent.NewConsumer(queue, func(ctx context.Context, m *idempotent.Message) error {
			mu.Lock()
			defer mu.Unlock()
			if active := c.sum("azconc.message.active", "messaging.destination.name", "orders"); active < 1 {
				t.Errorf("%d messages are active in a handler", active)
			}
			if runs[m.Key]++; m.Key == "m0" && runs[m.Key] == 1 {
				return errors.New("not now")
			}
			return nil
		}, &idempotent.ConsumerOptions{Dedupe: idempotent.DedupeNone, MaxMessages: n + 1, Hooks: c.Hooks})
		if err != nil {
			t.Fatal(err)
		}
		weeks, stop := c.Span(t.Context(), observe.Span{Name: "shop.Consumer"})
		if err := consumer.Run(weeks); err != nil {
			t.Fatal(err)
		}
		stop(nil)
		at := []string{"messaging.system", "azure_queue_storage", "messaging.destination.name", "orders"}
		c.check(n, "messaging.client.sent.messages", at...)
		c.check(n+1, "messaging.client.consumed.messages", at...)
		c.check(n+1, "messaging.process.duration", at...)
		c.check(1, "messaging.process.duration", "error.type", "_OTHER")
		c.check(n, "azconc.message.events", "azconc.event", "completed", "messaging.destination.name", "orders")
		c.check(1, "azconc.message.events", "azconc.event", "retried")
		c.check(n+1, "azconc.message.age", at...)
		c.check(0, "azconc.message.active", "messaging.destination.name", "orders")
		names := map[string]int{}
		for _, span := range c.spans.GetSpans() {
			if span.SpanKind == trace.SpanKindProducer || span.SpanKind == trace.SpanKindConsumer {
				names[span.Name]++
			}
			if span.SpanKind == trace.SpanKindConsumer && span.Parent.IsValid() {
				t.Errorf("%s is in the trace of its consumer", span.Name)
			}
			if span.SpanKind == trace.SpanKindConsumer && (len(span.Links) != 1 || span.Links[0].SpanContext.TraceID() != trace.SpanContextFromContext(ctx).TraceID()) {
				t.Errorf("%s is not linked to the sender's trace: %v", span.Name, span.Links)
			}
		}
		if names["send orders"] != n || names["process orders"] != n+1 {
			t.Errorf("spans %v", names)
		}
	})
}

// TestTheHeldLocksAreCounted also when a lock is lost, whose end is reported more than once.
func TestTheHeldLocksAreCounted(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := aztest.New(nil)
		c := collect(t, nil)
		if _, err := s.Container("locks").Create(t.Context(), nil); err != nil {
			t.Fatal(err)
		}
		k, err := pessimistic.NewLocker(s.Container("locks"), &pessimistic.LockerOptions{Hooks: c.Hooks})
		if err != nil {
			t.Fatal(err)
		}
		lock := func(name string) *pessimistic.Hold {
			h, err := k.Lock(t.Context(), name, nil)
			if err != nil {
				t.Fatal(err)
			}
			return h
		}
		a, b := lock("a"), lock("b")
		c.check(2, "azconc.lease.held")
		if err := a.Release(t.Context()); err != nil {
			t.Error(err)
		}
		c.check(1, "azconc.lease.held")
		s.SetFaults(aztest.Fault{Kind: aztest.Refuse})
		bubble.Sleep(2 * time.Minute)
		s.SetFaults()
		if err := b.Release(t.Context()); !errors.Is(err, pessimistic.ErrLost) {
			t.Errorf("%v, want it lost", err)
		}
		c.check(0, "azconc.lease.held")
		c.check(1, "azconc.lease.events", "azconc.event", "lost")
		c.check(2, "azconc.lease.wait.duration")
		if err := lock("a").Release(t.Context()); err != nil {
			t.Error(err)
		}
		c.check(0, "azconc.lease.held")
		c.check(3, "azconc.lease.events", "azconc.event", "acquired")
	})
}

// TestNoMetricNamesAResourceUnasked: 2,500 locks are one series.
func TestNoMetricNamesAResourceUnasked(t *testing.T) {
	for _, label := range []func(string) string{nil, func(string) string { return "few" }} {
		c := collect(t, label)
		for i := range 2500 {
			for _, e := range []observe.Event{
				{Subject: observe.Lease, Kind: observe.Acquired},
				{Subject: observe.Lease, Kind: observe.Renewed},
				{Subject: observe.Lease, Kind: observe.Released},
				{Subject: observe.Change, Kind: observe.Conflict},
			} {
				e.Resource = fmt.Sprint("locks/", i)
				c.Event(t.Context(), e)
			}
			_, end := c.Span(t.Context(), observe.Span{Name: "optimistic.Update", Resource: fmt.Sprint("locks/", i)})
			end(nil)
		}
		c.check(2500, "azconc.lease.events", "azconc.event", "acquired")
		c.check(0, "azconc.lease.held")
		var rm metricdata.ResourceMetrics
		if err := c.reader.Collect(t.Context(), &rm); err != nil {
			t.Fatal(err)
		}
		for _, m := range rm.ScopeMetrics[0].Metrics {
			series := 0
			switch data := m.Data.(type) {
			case metricdata.Sum[int64]:
				series = len(data.DataPoints)
			case metricdata.Histogram[float64]:
				series = len(data.DataPoints)
			}
			if series > 3 {
				t.Errorf("%s has %d series", m.Name, series)
			}
		}
		if label != nil {
			c.check(2500, "azconc.change.events", "azconc.resource", "few")
		}
	}
}
