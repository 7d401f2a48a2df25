package manual

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore/policy"
	"github.com/Azure/azure-sdk-for-go/sdk/azcore/to"
	"github.com/Azure/azure-sdk-for-go/sdk/storage/azqueue/v2"
	"go.uber.org/goleak"

	"github.com/azconc/azconc/idempotent"
	"github.com/azconc/azconc/pkg/aztest"
	"github.com/azconc/azconc/pkg/aztest/bubble"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// rig is the service in memory, with a queue.
type rig struct {
	t       testing.TB
	service *aztest.Service
	queue   *azqueue.QueueClient // with Policy
}

func inBubble(t *testing.T, test func(t *testing.T, r *rig)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		r := &rig{t: t, service: aztest.New(nil)}
		r.service.Queue("orders")
		r.queue = r.client(r.service)
		test(t, r)
	})
}

func (r *rig) client(transport policy.Transporter) *azqueue.QueueClient {
	r.t.Helper()
	credential, err := azqueue.NewSharedKeyCredential(aztest.Account, aztest.Key)
	if err != nil {
		r.t.Fatal(err)
	}
	client, err := azqueue.NewQueueClientWithSharedKeyCredential(r.service.QueueURL()+"/orders", credential, &azqueue.ClientOptions{
		ClientOptions: policy.ClientOptions{Transport: transport, PerRetryPolicies: []policy.Policy{idempotent.Policy()}}})
	if err != nil {
		r.t.Fatal(err)
	}
	return client
}

// process is a client with connections of its own, which can be cut.
type process struct {
	wire  *aztest.Injector
	queue *azqueue.QueueClient
}

func (r *rig) process() *process {
	r.t.Helper()
	wire := aztest.Inject(r.service, 1)
	return &process{wire, r.client(wire)}
}

// send sends bodies, with their texts as ids.
func (r *rig) send(ids ...string) {
	r.t.Helper()
	p, err := idempotent.NewProducer(r.queue, nil)
	if err != nil {
		r.t.Fatal(err)
	}
	for _, id := range ids {
		if _, err := p.Send(context.Background(), idempotent.Outgoing{ID: id, Body: []byte(id)}); err != nil {
			r.t.Fatal(err)
		}
	}
}

// received is a message in our hands, as a user would type it.
func (r *rig) received() Delivery {
	r.t.Helper()
	got, _, err := Receive(r.t.Context(), r.queue, 1, 30*time.Second, nil)
	if err != nil || len(got) != 1 {
		r.t.Fatalf("%d messages, %v", len(got), err)
	}
	got[0].HeldUntil = time.Time{}
	return got[0]
}

// receiveAndDie has another client receive messages.
func (r *rig) receiveAndDie(n int, visibility time.Duration) {
	r.t.Helper()
	resp, err := r.queue.DequeueMessages(context.Background(), &azqueue.DequeueMessagesOptions{
		NumberOfMessages: to.Ptr(int32(n)), VisibilityTimeout: to.Ptr(int32(visibility / time.Second))})
	if err != nil || len(resp.Messages) == 0 {
		r.t.Fatal(len(resp.Messages), err)
	}
}

// left is how many messages there are, hidden ones included. Its request is not in the log.
func (r *rig) left() int {
	r.t.Helper()
	p, err := r.service.QueueService().NewQueueClient("orders").GetProperties(context.Background(), nil)
	if err != nil {
		r.t.Fatal(err)
	}
	return int(*p.ApproximateMessagesCount)
}

// pass lets the bubble's time pass.
func pass(d time.Duration) { bubble.Sleep(d) }
