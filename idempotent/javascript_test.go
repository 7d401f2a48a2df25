package idempotent

import (
	"context"
	"encoding/hex"
	"encoding/json"
	"errors"
	"net/http"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore/policy"
	"github.com/Azure/azure-sdk-for-go/sdk/storage/azqueue/v2"

	"github.com/azconc/azconc/idempotent/redrive"
	"github.com/azconc/azconc/pkg/azurite"
	"github.com/azconc/azconc/pkg/azurite/azuritetest"
)

// interop is a queue that azconc and the JavaScript SDK share.
type interop struct {
	t       *testing.T
	account azurite.Account
	service *azqueue.ServiceClient
}

func newInterop(t *testing.T) *interop {
	t.Helper()
	pool := &http.Transport{}
	t.Cleanup(pool.CloseIdleConnections)
	account := azuritetest.Account(t)
	service, err := azqueue.NewServiceClientFromConnectionString(account.ConnectionString(), &azqueue.ClientOptions{
		ClientOptions: policy.ClientOptions{Transport: &http.Client{Transport: pool}, PerRetryPolicies: []policy.Policy{Policy()}}})
	if err != nil {
		t.Fatal(err)
	}
	return &interop{t: t, account: account, service: service}
}

// queue returns one that exists.
func (i *interop) queue(name string) *azqueue.QueueClient {
	i.t.Helper()
	q := i.service.NewQueueClient(name)
	if _, err := q.Create(i.t.Context(), nil); err != nil {
		i.t.Fatal(err)
	}
	return q
}

func (i *interop) javascript(args ...string) []byte {
	i.t.Helper()
	return azuritetest.JavaScript(i.t, i.account.ConnectionString(), "testdata/javascript/queue.mjs", args...)
}

// theySend sends bodies with the JavaScript SDK.
func (i *interop) theySend(queue string, as Encoding, bodies []string) {
	i.t.Helper()
	args := []string{queue, "send", string(as)}
	for _, b := range bodies {
		args = append(args, hex.EncodeToString([]byte(b)))
	}
	i.javascript(args...)
}

// theyReceive returns what the JavaScript SDK has received and deleted.
func (i *interop) theyReceive(queue string, as Encoding) (bodies []string) {
	i.t.Helper()
	var got []string
	if err := json.Unmarshal(i.javascript(queue, "receive", string(as)), &got); err != nil {
		i.t.Fatal(err)
	}
	for _, h := range got {
		b, err := hex.DecodeString(h)
		if err != nil {
			i.t.Fatal(err)
		}
		bodies = append(bodies, string(b))
	}
	slices.Sort(bodies)
	return bodies
}

// weConsume returns what a Consumer has handled.
func (i *interop) weConsume(queue *azqueue.QueueClient, o ConsumerOptions, result error) (bodies []string) {
	i.t.Helper()
	var mu sync.Mutex
	o.ExitWhenEmpty, o.Poll = true, pollEvery(10*time.Millisecond)
	o = withoutMarkers(o)
	c, err := NewConsumer(queue, func(_ context.Context, m *Message) error {
		mu.Lock()
		defer mu.Unlock()
		bodies = append(bodies, string(m.Body))
		return result
	}, &o)
	if err != nil {
		i.t.Fatal(err)
	}
	if err := c.Run(i.t.Context()); err != nil {
		i.t.Fatal(err)
	}
	slices.Sort(bodies)
	return bodies
}

// That SDK drops the line breaks of what it sends as text (@azure/core-xml, stringifyXML), so there are none in what it is
// given. In base64, and in what it receives, they survive.
var (
	interopLines  = []string{"two\nlines\n"}
	interopTexts  = []string{" two  spaces", "plain", "{\"order\":\"17\",\"note\":\"<&> grüße 🚀\"}"}
	interopBinary = []string{"\x00\x01\xfe\xff", "\x1f\x8bzipped"}
)

func TestWhatTheJavaScriptSDKSendsIsHandled(t *testing.T) {
	if testing.Short() {
		t.Skip("SKIP: it starts Node.js, and this is a short run")
	}
	i := newInterop(t)
	for name, tt := range map[string]struct {
		they, we Encoding
		bodies   []string
	}{
		"base64":         {Base64, Base64, slices.Concat(interopBinary, interopTexts, interopLines)},
		"base64-by-auto": {Base64, Auto, interopTexts},
		"text":           {Text, Text, interopTexts},
		"text-by-auto":   {Text, Auto, interopTexts},
	} {
		if testing.Short() && (tt.they == tt.we) != (tt.they == Base64) { // another of both, read in another way
			continue
		}
		q := i.queue(name)
		i.theySend(name, tt.they, tt.bodies)
		want := slices.Sorted(slices.Values(tt.bodies))
		if got := i.weConsume(q, ConsumerOptions{Encoding: tt.we}, nil); !slices.Equal(got, want) {
			t.Errorf("%s: handled %q, want %q", name, got, want)
		}
		if p, err := q.GetProperties(t.Context(), nil); err != nil || *p.ApproximateMessagesCount != 0 {
			t.Errorf("%s: %d left, %v", name, *p.ApproximateMessagesCount, err)
		}
	}
}

func TestTheJavaScriptSDKReceivesWhatIsSent(t *testing.T) {
	if testing.Short() {
		t.Skip("SKIP: it starts Node.js, and this is a short run")
	}
	i := newInterop(t)
	for as, bodies := range map[Encoding][]string{Base64: slices.Concat(interopBinary, interopTexts, interopLines), Text: slices.Concat(interopTexts, interopLines)} {
		q := i.queue(string(as))
		p, err := NewProducer(q, &ProducerOptions{Encoding: as})
		if err != nil {
			t.Fatal(err)
		}
		for _, b := range bodies {
			if _, err := p.Send(t.Context(), Outgoing{Body: []byte(b)}); err != nil {
				t.Fatal(err)
			}
		}
		want := slices.Sorted(slices.Values(bodies))
		if got := i.theyReceive(string(as), as); !slices.Equal(got, want) {
			t.Errorf("%s: received %q, want %q", as, got, want)
		}
	}
}

// TestAMessageOfTheJavaScriptSDKComesBackFromPoisonAsItWas has one go to the poison queue and back: a reader of the queue
// with that SDK must not find an envelope there.
func TestAMessageOfTheJavaScriptSDKComesBackFromPoisonAsItWas(t *testing.T) {
	if testing.Short() {
		t.Skip("SKIP: it starts Node.js, and this is a short run")
	}
	i := newInterop(t)
	q, poison := i.queue("orders"), i.queue("orders-poison")
	i.theySend("orders", Base64, interopTexts)
	if got := i.weConsume(q, ConsumerOptions{Poison: poison}, Poison(errors.New("broken"))); len(got) != len(interopTexts) {
		t.Fatalf("handled %q", got)
	}
	if moved, err := redrive.Run(t.Context(), poison, q, nil); err != nil || moved.Moved != len(interopTexts) {
		t.Fatalf("%+v, %v", moved, err)
	}
	want := slices.Sorted(slices.Values(interopTexts))
	if got := i.theyReceive("orders", Base64); !slices.Equal(got, want) {
		t.Errorf("received %q, want %q", got, want)
	}
}
