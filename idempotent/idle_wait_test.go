//go:build !race

// Days of idle polls, counted: the race detector has seen such polls in the other tests of this package.

package idempotent

import (
	"context"
	"fmt"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/azconc/azconc/pkg/aztest"
	"github.com/azconc/azconc/pkg/aztest/bubble"
	"github.com/azconc/azconc/pkg/retry"
)

// idle runs a consumer whose queue gets a message now and then, and returns how long the messages waited for their handlers,
// sorted, and how many receives there would be in a day without messages, by those of some hours.
func idle(t *testing.T, poll retry.Backoff, messages, hours int) (waits []time.Duration, day int) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		r := newRigOn(t, aztest.New(&aztest.Options{Latency: func() time.Duration { return 5 * time.Millisecond }}))
		handled := make(chan time.Time, 1)
		c := r.consumer(func(context.Context, *Message) error { handled <- time.Now(); return nil }, ConsumerOptions{Poll: poll})
		ctx, stop := context.WithCancel(t.Context())
		over := make(chan error, 1)
		go func() { over <- c.Run(ctx) }()
		for i := range messages {
			bubble.Sleep(2*time.Minute + time.Duration(i)*137*time.Millisecond)
			began := time.Now()
			r.send(fmt.Sprint(i))
			waits = append(waits, (<-handled).Sub(began))
		}
		bubble.Sleep(5 * time.Minute)
		before := c.Stats().Requests
		bubble.Sleep(time.Duration(hours) * time.Hour)
		day = (c.Stats().Requests - before) * 24 / hours
		stop()
		if err := <-over; err != nil {
			t.Error(err)
		}
	})
	slices.Sort(waits)
	return waits, day
}

// TestAMessageToAnIdleConsumerWaitsAtMostFiveSeconds, at a bill that the documentation of Poll states.
func TestAMessageToAnIdleConsumerWaitsAtMostFiveSeconds(t *testing.T) {
	for _, tt := range []struct {
		limit       time.Duration
		messages    int
		least, most int
	}{
		{0, 200, 19000, 19400},
		{30 * time.Second, 30, 3150, 3250},
	} {
		hours := 24
		if testing.Short() && tt.limit == 0 {
			hours, tt.messages = 3, 60
		}
		waits, day := idle(t, retry.Backoff{Cap: tt.limit}, tt.messages, hours)
		n := len(waits)
		t.Logf("a Cap of %v: a wait of %v at the median, %v at p99, %v at most; %d requests a day", tt.limit, waits[n/2], waits[n*99/100], waits[n-1], day)
		longest := max(tt.limit, 5*time.Second) + 50*time.Millisecond
		if waits[n*99/100] > longest || tt.limit == 0 && waits[n*98/100] > 5*time.Second || day < tt.least || day > tt.most {
			t.Errorf("want a wait of %v at most, and %d to %d requests a day", longest, tt.least, tt.most)
		}
	}
}
