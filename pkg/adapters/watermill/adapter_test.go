// Package watermill_test runs watermill's own test suite for publishers and subscribers on package idempotent. It is a module of
// its own, so that who uses azconc does not depend on watermill.
package watermill_test

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/storage/azqueue"
	"github.com/ThreeDotsLabs/watermill/message"

	"github.com/azconc/azconc/idempotent"
	"github.com/azconc/azconc/pkg/retry"
)

// publisher sends to the queue that is named like the topic.
type publisher struct {
	queue func(topic string) *azqueue.QueueClient
}

func (p *publisher) Publish(topic string, messages ...*message.Message) error {
	producer, err := idempotent.NewProducer(p.queue(topic), &idempotent.ProducerOptions{CreateQueue: true})
	if err != nil {
		return err
	}
	for _, m := range messages {
		if _, err := producer.Send(m.Context(), idempotent.Outgoing{ID: m.UUID, Body: m.Payload, Headers: m.Metadata}); err != nil {
			return err
		}
	}
	return nil
}

func (p *publisher) Close() error { return nil }

// subscriber consumes, with markers. All subscribers of a topic share its messages.
type subscriber struct {
	queue   func(topic string) *azqueue.QueueClient
	markers *idempotent.Markers

	closing chan struct{}
	once    sync.Once
	running sync.WaitGroup
}

func (s *subscriber) SubscribeInitialize(topic string) error {
	_, err := s.queue(topic).Create(context.Background(), nil)
	return err
}

var errNacked = errors.New("nacked")

func (s *subscriber) Subscribe(ctx context.Context, topic string) (<-chan *message.Message, error) {
	out := make(chan *message.Message)
	handle := func(ctx context.Context, m *idempotent.Message) error {
		ctx, cancel := context.WithCancel(ctx)
		defer cancel()
		wm := message.NewMessage(m.Key, m.Body)
		for name, value := range m.Headers {
			wm.Metadata.Set(name, value)
		}
		wm.SetContext(ctx)
		select {
		case out <- wm:
		case <-ctx.Done():
			return context.Cause(ctx)
		}
		select {
		case <-wm.Acked():
			return nil
		case <-wm.Nacked():
			return idempotent.RetryAfter(errNacked, 0)
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
	consumer, err := idempotent.NewConsumer(s.queue(topic), handle, &idempotent.ConsumerOptions{
		Markers: s.markers, SoftStop: time.Nanosecond, MaxAttempts: -1, MaxDeliveries: -1, Poll: retry.Backoff{Base: 10 * time.Millisecond, Cap: 100 * time.Millisecond},
	})
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
			panic(err) // the suite has no way to hear of it
		}
	})
	return out, nil
}

func (s *subscriber) Close() error {
	s.once.Do(func() { close(s.closing) })
	s.running.Wait()
	return nil
}
