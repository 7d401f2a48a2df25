package idempotent

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore/to"
	"github.com/Azure/azure-sdk-for-go/sdk/data/aztables"
	"github.com/Azure/azure-sdk-for-go/sdk/storage/azqueue/v2"

	"github.com/azconc/azconc/pkg/azerr"
	"github.com/azconc/azconc/pkg/aztest"
	"github.com/azconc/azconc/pkg/azurite"
	"github.com/azconc/azconc/pkg/observe"
)

// far is a service whose requests each take the latency.
type far struct {
	*rig
	latency atomic.Int64
	sent    int
	tables  func(name string) *aztables.Client
	wire    *aztest.Injector // on a real server
}

// farOnAzurite is a rig on a real server, with new tables.
func farOnAzurite(t testing.TB, account azurite.Account) *far {
	t.Helper()
	p := newOnAzurite(t, account)
	f := &far{rig: &rig{t: t, queue: p.queue}, tables: p.tables.NewClient, wire: p.wire}
	if _, err := p.queue.Create(context.Background(), nil); err != nil && !azerr.Has(err, "QueueAlreadyExists") {
		t.Fatal(err)
	}
	for _, table := range []string{"markers", "effects"} {
		_, _ = p.tables.DeleteTable(context.Background(), table, nil)
		if _, err := p.tables.CreateTable(context.Background(), table, nil); err != nil {
			t.Fatal(err)
		}
	}
	var err error
	if f.markers, err = NewMarkers(f.tables("markers"), nil); err != nil {
		t.Fatal(err)
	}
	f.effects = f.tables("effects")
	if f.inbox, err = NewInbox(f.effects, &InboxOptions{KeepExpired: true}); err != nil {
		t.Fatal(err)
	}
	return f
}

// fill puts n messages into the queue at once, as fast as the service is in memory.
func (f *far) fill(n int) {
	f.t.Helper()
	near := f.latency.Swap(0)
	defer f.latency.Store(near)
	ids := make([]string, n)
	for i := range ids {
		f.sent++
		ids[i] = fmt.Sprintf("m%07d", f.sent) // never one that was there before
	}
	f.send(ids...)
}

// bareTable sends the table requests of a mode with the SDK alone.
type bareTable struct {
	batch   func(batch []*azqueue.DequeuedMessage) // before and after the messages of a receive are handled
	message func(m *azqueue.DequeuedMessage)       // for each message
}

// bare handles all that is in the queue with the SDK alone: workers receive 32 messages each and delete them, one after the
// other, so that as many requests are under way all the time as there are workers. It returns when the last message is gone.
func (f *far) bare(workers, n int, table bareTable) {
	f.t.Helper()
	var gone atomic.Int64
	var all sync.WaitGroup
	for range workers {
		all.Go(func() {
			for gone.Load() < int64(n) {
				resp, err := f.queue.DequeueMessages(context.Background(), &azqueue.DequeueMessagesOptions{NumberOfMessages: to.Ptr(int32(32))})
				if err != nil {
					f.t.Error(err)
					return
				}
				if len(resp.Messages) == 0 {
					return
				}
				if table.batch != nil {
					table.batch(resp.Messages)
				}
				for _, m := range resp.Messages {
					if table.message != nil {
						table.message(m)
					}
					if _, err := f.queue.DeleteMessage(context.Background(), *m.MessageID, *m.PopReceipt, nil); err != nil {
						f.t.Error(err)
					}
					gone.Add(1)
				}
			}
		})
	}
	all.Wait()
}

// ahead is the other bare loop: one receives 32 messages at a time, without waiting for those who delete them.
func (f *far) ahead(workers int) {
	f.t.Helper()
	work := make(chan *azqueue.DequeuedMessage, 32)
	var all sync.WaitGroup
	for range workers {
		all.Go(func() {
			for m := range work {
				if _, err := f.queue.DeleteMessage(context.Background(), *m.MessageID, *m.PopReceipt, nil); err != nil {
					f.t.Error(err)
				}
			}
		})
	}
	for {
		resp, err := f.queue.DequeueMessages(context.Background(), &azqueue.DequeueMessagesOptions{NumberOfMessages: to.Ptr(int32(32))})
		if err != nil {
			f.t.Error(err)
		}
		if len(resp.Messages) == 0 {
			break
		}
		for _, m := range resp.Messages {
			work <- m
		}
	}
	close(work)
	all.Wait()
}

// length returns how many messages are in the queue, hidden ones included.
func (f *far) length() int {
	f.t.Helper()
	p, err := f.queue.GetProperties(context.Background(), nil)
	if err != nil {
		f.t.Fatal(err)
	}
	return int(*p.ApproximateMessagesCount)
}

// ours handles n messages with a Consumer, and returns when the last one is gone.
func (f *far) ours(n int, o ConsumerOptions) {
	f.t.Helper()
	f.oursWith(n, o, func(context.Context, *Message) error { return nil })
}

func (f *far) oursWith(n int, o ConsumerOptions, handler Handler) {
	f.t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	var done atomic.Int64
	o = withoutMarkers(o)
	o.Hooks.Event = func(_ context.Context, e observe.Event) {
		if e.Kind == observe.Completed && done.Add(1) == int64(n) {
			cancel()
		}
	}
	c, err := NewConsumer(f.queue, handler, &o)
	if err != nil {
		f.t.Fatal(err)
	}
	if err := c.Run(ctx); err != nil {
		f.t.Error(err)
	}
	if left := f.length(); left != 0 || done.Load() != int64(n) {
		f.t.Errorf("%d done, %d left", done.Load(), left)
	}
}
