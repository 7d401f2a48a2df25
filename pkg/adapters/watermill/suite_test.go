package azwatermill_test

import (
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore/policy"
	"github.com/Azure/azure-sdk-for-go/sdk/storage/azqueue/v2"
	"github.com/ThreeDotsLabs/watermill"
	"github.com/ThreeDotsLabs/watermill/message"
	"github.com/ThreeDotsLabs/watermill/pubsub/tests"

	"github.com/azconc/azconc/idempotent"
	azwatermill "github.com/azconc/azconc/pkg/adapters/watermill"
	"github.com/azconc/azconc/pkg/aztest"
	"github.com/azconc/azconc/pkg/retry"
)

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
// With the race detector the suite sends fewer messages: ForceShort.
//
// ExactlyOnceDelivery is false, though markers are used: a message that is handled when its process dies is delivered again.
func TestPubSub(t *testing.T) {
	tests.TestPubSub(t, features(raceEnabled), pubSub(t, aztest.New(nil)), nil)
}

// TestPubSubUnderFaults runs the suite's tests while one answer in five is lost, with fewer messages, and in the time of a bubble,
// where the waits after a lost answer cost nothing.
func TestPubSubUnderFaults(t *testing.T) {
	if raceEnabled {
		t.Skip("SKIP: scripts/test runs it without the race detector, with which it takes a minute")
	}
	for name, test := range map[string]func(*testing.T, tests.TestContext, tests.PubSubConstructor){
		"PublishSubscribe":                  tests.TestPublishSubscribe,
		"ConcurrentSubscribe":               tests.TestConcurrentSubscribe,
		"ConcurrentSubscribeMultipleTopics": tests.TestConcurrentSubscribeMultipleTopics,
		"ResendOnError":                     tests.TestResendOnError,
		"ContinueAfterSubscribeClose":       tests.TestContinueAfterSubscribeClose,
		"ConcurrentClose":                   tests.TestConcurrentClose,
		"ContinueAfterErrors":               tests.TestContinueAfterErrors,
		"PublisherClose":                    tests.TestPublisherClose,
		"Topic":                             tests.TestTopic,
		"MessageCtx":                        tests.TestMessageCtx,
		"SubscribeCtx":                      tests.TestSubscribeCtx,
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				service := aztest.New(nil)
				service.SetFaults(aztest.Fault{Kind: aztest.LoseAnswer, Probability: 0.1})
				test(t, tests.TestContext{TestID: tests.NewTestID(), Features: features(true)}, pubSub(t, service))
			})
		})
	}
}

// TestSubscribeBeforePublish: nothing has created the queue, as in programs that start their subscribers first. The suite calls
// SubscribeInitialize, which watermill does not require of them.
func TestSubscribeBeforePublish(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		service := aztest.New(nil)
		service.SetFaults(aztest.Fault{Kind: aztest.LoseAnswer, Probability: 0.1})
		publisher, subscriber := pubSub(t, service)(t)
		messages, err := subscriber.Subscribe(t.Context(), "orders")
		if err != nil {
			t.Fatal(err)
		}
		synctest.Wait()
		if err := publisher.Publish("orders", message.NewMessage("order-17", []byte("17 apples"))); err != nil {
			t.Fatal(err)
		}
		m, ok := <-messages
		if !ok || m.UUID != "order-17" {
			t.Fatalf("the subscription has ended: %v, %v", ok, m)
		}
		m.Ack()
		if err := subscriber.Close(); err != nil {
			t.Error(err)
		}
	})
}

// TestTheErrorOfAQueueThatCannotBeCreatedHasNoSecret: that of the SDK, which has the URL with its signature, once came through.
func TestTheErrorOfAQueueThatCannotBeCreatedHasNoSecret(t *testing.T) {
	service := aztest.New(nil)
	queues, err := azqueue.NewServiceClientWithNoCredential(service.QueueURL()+"?sv=2025-01-05&sig=T0PSECRET", &azqueue.ClientOptions{
		ClientOptions: policy.ClientOptions{Transport: service, Retry: policy.RetryOptions{MaxRetries: -1}}})
	if err != nil {
		t.Fatal(err)
	}
	subscriber, err := azwatermill.NewSubscriber(queues, &azwatermill.SubscriberOptions{ConsumerOptions: idempotent.ConsumerOptions{Dedupe: idempotent.DedupeNone}})
	if err != nil {
		t.Fatal(err)
	}
	service.SetFaults(aztest.Fault{Kind: aztest.Refuse})
	err = subscriber.SubscribeInitialize("orders")
	if err == nil || strings.Contains(err.Error(), "T0PSECRET") || !strings.HasPrefix(err.Error(), "create queue orders: ") {
		t.Errorf("SubscribeInitialize: %v", err)
	}
}

func TestAQueueThatExistsWithMetadataIsNotCreatedAgain(t *testing.T) {
	service := aztest.New(nil)
	if _, err := service.Queue("orders").SetMetadata(t.Context(), &azqueue.SetMetadataOptions{Metadata: map[string]*string{"team": new("shop")}}); err != nil {
		t.Fatal(err)
	}
	_, subscriber := pubSub(t, service)(t)
	if err := subscriber.(message.SubscribeInitializer).SubscribeInitialize("orders"); err != nil {
		t.Error(err)
	}
}

// pubSub makes publishers and subscribers of a service.
func pubSub(t *testing.T, service *aztest.Service) tests.PubSubConstructor {
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
	return func(t *testing.T) (message.Publisher, message.Subscriber) {
		publisher, err := azwatermill.NewPublisher(queues, nil)
		if err != nil {
			t.Fatal(err)
		}
		subscriber, err := azwatermill.NewSubscriber(queues, &azwatermill.SubscriberOptions{Logger: failing{t}, ConsumerOptions: idempotent.ConsumerOptions{
			Markers: markers, Visibility: 3 * time.Second, SoftStop: time.Nanosecond, // the suite closes subscribers whose messages it never answers
			Poll: retry.Backoff{Base: 10 * time.Millisecond, Cap: 100 * time.Millisecond}, Backoff: retry.Backoff{Base: time.Nanosecond, Cap: time.Nanosecond},
		}})
		if err != nil {
			t.Fatal(err)
		}
		return publisher, subscriber
	}
}

func features(short bool) tests.Features {
	return tests.Features{
		Persistent:        true,
		ForceShort:        short,
		GenerateTopicFunc: func(c tests.TestContext) string { return "t-" + c.TestID.String() },
	}
}

// failing fails the test when a subscription ends with an error.
type failing struct{ t *testing.T }

func (l failing) Error(msg string, err error, fields watermill.LogFields) {
	l.t.Error(msg, err, fields)
}
func (l failing) Info(string, watermill.LogFields)                 {}
func (l failing) Debug(string, watermill.LogFields)                {}
func (l failing) Trace(string, watermill.LogFields)                {}
func (l failing) With(watermill.LogFields) watermill.LoggerAdapter { return l }
