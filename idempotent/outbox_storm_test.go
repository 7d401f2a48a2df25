package idempotent

import (
	"context"
	"flag"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/azconc/azconc/pkg/aztest"
)

var outboxMessages = flag.Int("outbox-messages", 300, "how many messages a storm of an outbox has")

// TestAStormOfKillsLosesNothingThatFollows has processes handle messages that each end at a request of their own, one after the
// other: their connections are cut before that request, or before its answer, or their Run ends. Others are at work meanwhile, since
// a process is not waited for. Each effect happens once, and a receiver that knows copies by their ids gets each message once. More of it: go test -run StormOfKills . -args -outbox-messages 2000
func TestAStormOfKillsLosesNothingThatFollows(t *testing.T) {
	n := *outboxMessages
	if underRace || testing.Short() {
		n = 100
	}
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t)
		want := map[string]int{}
		for i := range n {
			key := fmt.Sprintf("m%04d", i)
			want[key] = followers(key)
			if r.send(key); i%10 == 0 {
				r.send(key) // a copy
			}
		}
		var all sync.WaitGroup
		kills := 0
		for began := time.Now(); !r.queueIsEmpty(); kills++ {
			if time.Since(began) > 12*time.Hour {
				t.Fatalf("%d messages are left after %d kills", len(r.left(r.queue)), kills)
			}
			<-r.killedAt(kills/3%60+1, kills%3, &all)
		}
		all.Wait()
		pass(time.Minute) // Run does not wait for what a process that is cut off goes on trying
		copies := r.judgeOutbox(want)
		t.Logf("%d messages, %d kills, %d copies of what followed, %d of it still stored", n, kills, copies, r.outboxRowsLeft())
		if kills < n/10 || copies == 0 || len(r.buried()) > 0 {
			t.Errorf("%d kills, %d copies, %d poison", kills, copies, len(r.buried()))
		}
	})
}

// killedAt starts a process that ends at its k-th request, in one of three ways, or after 20 s.
func (r *rig) killedAt(k, how int, all *sync.WaitGroup) <-chan struct{} {
	p := r.process().withOutbox()
	c, err := NewConsumer(p.queue, func(ctx context.Context, m *Message) error { return p.apply(ctx, m, followers(m.Key)) }, &ConsumerOptions{
		Dedupe: DedupeInbox, Concurrency: 4, Poison: p.poison, Visibility: 5 * time.Second, HardStop: time.Second,
		MaxAttempts: -1, MaxDeliveries: -1, Backoff: pollEvery(time.Second), Poll: pollEvery(time.Second),
	})
	if err != nil {
		r.t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	killed := make(chan struct{})
	kill := sync.OnceFunc(func() {
		close(killed)
		if cancel(); how < 2 {
			c.StopNow()
		}
	})
	var n atomic.Int64
	p.wire.SetFaults(aztest.Fault{Kind: []aztest.FaultKind{aztest.LoseRequest, aztest.LoseAnswer, aztest.Slow}[how], Match: func(*aztest.Request) bool {
		dead := int(n.Add(1)) >= k
		if dead {
			kill()
		}
		return dead
	}})
	time.AfterFunc(20*time.Second, kill)
	all.Go(func() { _ = c.Run(ctx) })
	return killed
}
