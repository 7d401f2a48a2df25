package azwatermill

import (
	"context"
	"errors"
	"sync"

	"github.com/Azure/azure-sdk-for-go/sdk/storage/azqueue/v2"
	"github.com/ThreeDotsLabs/watermill"
	"github.com/ThreeDotsLabs/watermill/message"

	"github.com/azconc/azconc/idempotent"
	"github.com/azconc/azconc/pkg/azerr"
)

// SubscriberOptions configures a Subscriber. Its ConsumerOptions need Markers, or a Dedupe that needs none.
type SubscriberOptions struct {
	// ConsumerOptions are those of the Consumer of each subscription, but for CreateQueue: a queue that does not exist is created,
	// because watermill's programs may subscribe before they publish. Concurrency is how many messages may be waiting for their
	// Ack at a time. After a Nack, a message is delivered again after Backoff, and goes to the Poison queue, if there is one,
	// after MaxAttempts. SoftStop is how long a message that was delivered may be acknowledged after Close.
	idempotent.ConsumerOptions

	// Logger gets the error that ends a subscription, such as a missing permission. Defaults to none.
	Logger watermill.LoggerAdapter

	_ struct{}
}

// Subscriber is a message.Subscriber and a message.SubscribeInitializer. It is safe for concurrent use.
type Subscriber struct {
	queues *azqueue.ServiceClient
	opts   SubscriberOptions

	mu      sync.Mutex
	closing chan struct{} // closed under mu
	running sync.WaitGroup
}

var (
	_ message.Subscriber           = (*Subscriber)(nil)
	_ message.SubscribeInitializer = (*Subscriber)(nil)
)

// NewSubscriber returns a Subscriber. The client should have idempotent.Policy. It sends no request.
func NewSubscriber(queues *azqueue.ServiceClient, opts *SubscriberOptions) (*Subscriber, error) {
	if queues == nil {
		return nil, errors.New("azwatermill: no client of the queue service")
	}
	var o SubscriberOptions
	if opts != nil {
		o = *opts
	}
	o.CreateQueue = true
	if o.Logger == nil {
		o.Logger = watermill.NopLogger{}
	}
	check := o.ConsumerOptions
	check.Budget = nil // it counts its Consumers
	_, err := idempotent.NewConsumer(queues.NewQueueClient("topic"), func(context.Context, *idempotent.Message) error { return nil }, &check)
	return &Subscriber{queues: queues, opts: o, closing: make(chan struct{})}, err
}

// SubscribeInitialize creates the queue of a topic if it does not exist.
func (s *Subscriber) SubscribeInitialize(topic string) error {
	_, err := s.queues.NewQueueClient(topic).Create(context.Background(), nil)
	if azerr.Has(err, "QueueAlreadyExists") { // with other metadata
		return nil
	}
	return azerr.Op("create queue", topic, err)
}

var errNacked = errors.New("nacked")

// Subscribe delivers the messages of a topic until ctx ends or the Subscriber is closed, and closes the channel then, when the
// messages that were delivered are acknowledged or SoftStop has passed. The context of a message ends after its Ack or Nack, and
// when the message is no longer this subscriber's. An error that ends the subscription closes the channel, and goes to the Logger.
func (s *Subscriber) Subscribe(ctx context.Context, topic string) (<-chan *message.Message, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	select {
	case <-s.closing:
		return nil, ErrClosed
	default:
	}
	out := make(chan *message.Message)
	handle := func(ctx context.Context, m *idempotent.Message) error { return deliver(ctx, m, out) }
	consumer, err := idempotent.NewConsumer(s.queues.NewQueueClient(topic), handle, &s.opts.ConsumerOptions)
	if err != nil {
		return nil, err
	}
	ctx, stop := context.WithCancel(ctx)
	s.running.Go(func() {
		select {
		case <-s.closing:
		case <-ctx.Done():
		}
		stop()
	})
	s.running.Go(func() {
		defer close(out)
		defer stop()
		if err := consumer.Run(ctx); err != nil {
			s.opts.Logger.Error("the subscription has ended", err, watermill.LogFields{"topic": topic})
		}
	})
	return out, nil
}

// deliver hands a message to the subscriber and waits for its answer.
func deliver(ctx context.Context, m *idempotent.Message, out chan<- *message.Message) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	wm := message.NewMessage(m.Key, m.Body)
	for name, value := range m.Headers {
		wm.Metadata.Set(name, value)
	}
	wm.SetContext(ctx)
	select {
	case out <- wm:
	case <-m.Stopping(): // perhaps nobody reads any more
		return idempotent.Postpone(0)
	case <-ctx.Done():
		return context.Cause(ctx)
	}
	select {
	case <-wm.Acked():
		return nil
	case <-wm.Nacked():
		return errNacked
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// Close ends all subscriptions, and returns when their channels are closed.
func (s *Subscriber) Close() error {
	s.mu.Lock()
	select {
	case <-s.closing:
	default:
		close(s.closing)
	}
	s.mu.Unlock()
	s.running.Wait()
	return nil
}
