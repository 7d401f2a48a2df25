package watermill_test

import (
	"flag"
	"testing"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore/policy"
	"github.com/Azure/azure-sdk-for-go/sdk/storage/azqueue"
	"github.com/ThreeDotsLabs/watermill/message"
	"github.com/ThreeDotsLabs/watermill/pubsub/tests"

	"github.com/azconc/azconc/idempotent"
	"github.com/azconc/azconc/pkg/aztest"
)

var full = flag.Bool("full", false, "send as many messages as the suite sends by default, up to 10,000 in a test")

// TestPubSub runs the suite on the service in memory. Of its features these do not fit a storage queue, and the suite skips their
// tests:
//
//   - ConsumerGroups: a queue hands a message to one of its consumers; there are no copies for groups.
//   - GuaranteedOrder, and with it TestNoAck: a storage queue does not promise order (REST: "Get Messages").
//   - NewSubscriberReceivesOldMessages: what was handled is deleted.
//   - ContextPreserved: the context of the publisher is in another process.
//   - RestartServiceCommand, and with it TestReconnect: the service in memory does not restart; TestAStormOfConsumers of
//     cmd/azconc restarts Azurite.
//
// ExactlyOnceDelivery is false, though markers are used: a message that is handled when its process dies is delivered again.
func TestPubSub(t *testing.T) {
	service := aztest.New(nil)
	credential, err := azqueue.NewSharedKeyCredential(aztest.Account, aztest.Key)
	if err != nil {
		t.Fatal(err)
	}
	queues, err := azqueue.NewServiceClientWithSharedKeyCredential(service.QueueURL(), credential, &azqueue.ClientOptions{
		ClientOptions: policy.ClientOptions{Transport: service, PerRetryPolicies: []policy.Policy{idempotent.Policy()}}})
	if err != nil {
		t.Fatal(err)
	}
	markers, err := idempotent.NewMarkers(service.Table("markers"), nil)
	if err != nil {
		t.Fatal(err)
	}
	pubSub := func(*testing.T) (message.Publisher, message.Subscriber) {
		return &publisher{queue: queues.NewQueueClient}, &subscriber{queue: queues.NewQueueClient, markers: markers, closing: make(chan struct{})}
	}
	features := tests.Features{
		Persistent:        true,
		ForceShort:        !*full,
		GenerateTopicFunc: func(c tests.TestContext) string { return "t-" + c.TestID.String() },
	}
	tests.TestPubSub(t, features, pubSub, nil)
}
