package idempotent

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/azconc/azconc/pkg/aztest"
	"github.com/azconc/azconc/pkg/aztest/bubble"
)

// TestAWokenConsumerPollsAtOnce: a producer in the same process does not wait for the next poll.
func TestAWokenConsumerPollsAtOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRigOn(t, aztest.New(nil))
		handled := make(chan time.Time, 1)
		c := r.consumer(func(context.Context, *Message) error { handled <- time.Now(); return nil }, ConsumerOptions{})
		p, err := NewProducer(r.queue, &ProducerOptions{Wake: c.Wake})
		if err != nil {
			t.Fatal(err)
		}
		ctx, stop := context.WithCancel(t.Context())
		over := make(chan error, 1)
		go func() { over <- c.Run(ctx) }()
		bubble.Sleep(time.Hour + time.Second)
		began := time.Now()
		if _, err := p.Send(t.Context(), Outgoing{Body: []byte("x")}); err != nil {
			t.Fatal(err)
		}
		if waited := (<-handled).Sub(began); waited != 0 {
			t.Errorf("it waited for %v", waited)
		}
		stop()
		if err := <-over; err != nil {
			t.Error(err)
		}
	})
}
