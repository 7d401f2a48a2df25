package idempotent

import (
	"context"
	"errors"
	"maps"
	"strings"
	"testing"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore"
	"github.com/Azure/azure-sdk-for-go/sdk/azcore/policy"

	"github.com/azconc/azconc/pkg/aztest"
	"github.com/azconc/azconc/pkg/retry"
)

func connectionString(s *aztest.Service) string {
	return "DefaultEndpointsProtocol=http;AccountName=" + aztest.Account + ";AccountKey=" + aztest.Key + ";QueueEndpoint=" + s.QueueURL() + ";TableEndpoint=" + s.TableURL()
}

// A worker creates its table of markers and its poison queue, and nothing else.
func TestAWorkerHandlesOneOfSeveralCopiesAndPoisonsWhatFails(t *testing.T) {
	inBubble(t, func(t *testing.T, _ *rig) {
		s := aztest.New(nil)
		producer, err := NewProducer(s.Queue("jobs"), nil)
		for _, id := range []string{"a", "a", "bad"} {
			if err == nil {
				_, err = producer.Send(t.Context(), Outgoing{ID: id, Body: []byte(id)})
			}
		}
		if err != nil {
			t.Fatal(err)
		}
		s.Reset()
		var runs tally
		w, err := NewWorkerFromConnectionString(connectionString(s), "jobs", func(_ context.Context, m *Message) error {
			if runs.add(m.Key); m.Key == "bad" {
				return Poison(errors.New("no"))
			}
			return nil
		}, &WorkerOptions{Client: policy.ClientOptions{Transport: s}, ConsumerOptions: ConsumerOptions{ExitWhenEmpty: true}})
		if err != nil {
			t.Fatal(err)
		}
		if n := s.Requests(); n != 0 {
			t.Errorf("%d requests to construct it", n)
		}
		never := retry.WithRandom(t.Context(), func() float64 { return 0.999 }) // no step of the collection
		if err := w.Run(never); err != nil || runs.n["a"] != 1 || runs.n["bad"] != 1 {
			t.Errorf("%v, %v", err, runs.n)
		}
		ops := map[string]int{}
		for _, q := range s.Log() {
			ops[q.Op]++
		}
		if n := ops["Get Messages"]; n < 2 || n > 3 { // the last one finds that the queue is empty
			t.Errorf("%d receives", n)
		}
		delete(ops, "Get Messages")
		want := map[string]int{
			"Entity Group Transaction": 3,                                          // the claims, before and after the table is created, and a completion
			"Create Table":             1, "Query Entities": 1, "Update Entity": 1, // the last two record what is poison
			"Put Message": 2, "Create Queue": 1, // the poison queue, before and after it is created
			"Delete Message": 3,
		}
		if !maps.Equal(ops, want) {
			t.Errorf("requests %v, want %v", ops, want)
		}
		poison := s.QueueService().NewQueueClient("jobs-poison")
		if p, err := poison.GetProperties(t.Context(), nil); err != nil || *p.ApproximateMessagesCount != 1 {
			t.Errorf("the poison queue: %v", err)
		}
	})
}

func TestAWorkerOfAQueueThatDoesNotExistSaysSo(t *testing.T) {
	inBubble(t, func(t *testing.T, _ *rig) {
		s := aztest.New(nil)
		w, err := NewWorkerFromConnectionString(connectionString(s), "typo", func(context.Context, *Message) error { return nil },
			&WorkerOptions{Client: policy.ClientOptions{Transport: s}})
		if err != nil {
			t.Fatal(err)
		}
		if err := w.Run(t.Context()); err == nil || !strings.Contains(err.Error(), "QueueNotFound") || s.Requests() != 1 {
			t.Errorf("%v after %d requests", err, s.Requests())
		}
	})
}

type staticToken struct{}

func (staticToken) GetToken(context.Context, policy.TokenRequestOptions) (azcore.AccessToken, error) {
	return azcore.AccessToken{Token: "t", ExpiresOn: time.Now().Add(time.Hour)}, nil
}

func TestAWorkerIsCheckedWhenItIsConstructed(t *testing.T) {
	handle := func(context.Context, *Message) error { return nil }
	for _, tt := range []struct {
		url  string
		opts *WorkerOptions
		want string
	}{
		{"https://a.queue.core.windows.net/orders", nil, ""},
		{"https://a.queue.core.windows.net/orders?sig=secret", nil, ""},
		{"https://proxy.example/orders", nil, `the host proxy.example has no ".queue."`},
		{"https://proxy.example/orders", &WorkerOptions{ConsumerOptions: ConsumerOptions{Dedupe: DedupeInbox}}, ""},
		{"https://a.queue.core.windows.net/", nil, "does not name a queue"},
		{"https://a.queue.core.windows.net/" + strings.Repeat("q", 57), nil, "cannot be its poison queue: set Poison"},
		{"orders?sig=secret", nil, "not the URL of a queue"},
		{"https://a.queue.core.windows.net/orders", &WorkerOptions{ConsumerOptions: ConsumerOptions{Concurrency: -1}}, "Concurrency"},
	} {
		c, err := NewWorker(tt.url, staticToken{}, handle, tt.opts)
		if (err == nil) != (tt.want == "") || err != nil && (!strings.Contains(err.Error(), tt.want) || strings.Contains(err.Error(), "secret")) {
			t.Errorf("%s: %v", tt.url, err)
		}
		if err == nil && tt.opts == nil && (c.o.Poison.URL() == "" || !strings.Contains(c.o.Poison.URL(), "/orders-poison") || c.o.Markers == nil) {
			t.Errorf("%s: %+v", tt.url, c.o)
		}
	}
	if c, err := NewWorker("https://a.queue.core.windows.net/orders?sig=secret", nil, handle, nil); err != nil || !strings.Contains(c.queue.SDK.URL(), "/orders?sig=secret") {
		t.Errorf("with a SAS: %v", err)
	}
	if _, err := NewWorkerFromConnectionString(aztest.ConnectionString("https://a.example"), "", handle, nil); err == nil || !strings.Contains(err.Error(), "no queue name") {
		t.Errorf("without a queue: %v", err)
	}
}
