package azwatermill

import (
	"errors"
	"fmt"
	"sync"

	"github.com/Azure/azure-sdk-for-go/sdk/storage/azqueue/v2"
	"github.com/ThreeDotsLabs/watermill/message"

	"github.com/azconc/azconc/idempotent"
)

// ErrClosed reports that a Publisher or Subscriber was closed.
var ErrClosed = errors.New("azwatermill: closed")

// PublisherOptions configures a Publisher. The zero value selects the defaults.
type PublisherOptions struct {
	// ProducerOptions are those of the Producer of each topic, but for CreateQueue: a queue that does not exist is created.
	// Metadata need the Envelope, which is the default encoding.
	idempotent.ProducerOptions

	_ struct{}
}

// Publisher is a message.Publisher. It is safe for concurrent use.
type Publisher struct {
	queues *azqueue.ServiceClient
	opts   idempotent.ProducerOptions

	mu        sync.Mutex
	closed    bool                            // guarded by mu
	producers map[string]*idempotent.Producer // by topic, guarded by mu
}

var _ message.Publisher = (*Publisher)(nil)

// NewPublisher returns a Publisher. It sends no request.
func NewPublisher(queues *azqueue.ServiceClient, opts *PublisherOptions) (*Publisher, error) {
	if queues == nil {
		return nil, errors.New("azwatermill: no client of the queue service")
	}
	var o PublisherOptions
	if opts != nil {
		o = *opts
	}
	o.CreateQueue = true
	if _, err := idempotent.NewProducer(queues.NewQueueClient("topic"), &o.ProducerOptions); err != nil { // options that no topic can have
		return nil, err
	}
	return &Publisher{queues: queues, opts: o.ProducerOptions, producers: map[string]*idempotent.Producer{}}, nil
}

// Publish sends messages one after the other, and stops at the first error: those before it were sent, and it may have been.
// Publishing all of them again is safe where the subscribers have Markers: their UUIDs are the same. Requests: 1 per message.
func (p *Publisher) Publish(topic string, messages ...*message.Message) error {
	producer, err := p.producer(topic)
	if err != nil {
		return err
	}
	for i, m := range messages {
		if _, err := producer.Send(m.Context(), idempotent.Outgoing{ID: m.UUID, Body: m.Payload, Headers: m.Metadata}); err != nil {
			return fmt.Errorf("message %d of %d, %s: %w", i+1, len(messages), m.UUID, err)
		}
	}
	return nil
}

func (p *Publisher) producer(topic string) (*idempotent.Producer, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.closed {
		return nil, ErrClosed
	}
	if producer := p.producers[topic]; producer != nil {
		return producer, nil
	}
	producer, err := idempotent.NewProducer(p.queues.NewQueueClient(topic), &p.opts)
	if err != nil {
		return nil, err
	}
	p.producers[topic] = producer
	return producer, nil
}

// Close refuses what is published from now on. What is being published goes on.
func (p *Publisher) Close() error {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.closed = true
	return nil
}
