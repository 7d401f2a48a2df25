//go:build !race

// A thousand messages on Azurite take ten times as long with the race detector: scripts/test runs this file without it.

package idempotent

import (
	"context"
	"encoding/json"
	"fmt"
	"sync"
	"testing"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/azconc/azconc/optimistic/tables"
	"github.com/azconc/azconc/pkg/aztest"
	"github.com/azconc/azconc/pkg/azurite/azuritetest"
)

// TestFiveHundredMessagesSentTwiceHaveFiveHundredEffects lets three consumers apply them, one of which loses its
// connections halfway.
func TestFiveHundredMessagesSentTwiceHaveFiveHundredEffects(t *testing.T) {
	n := 500
	if testing.Short() {
		n = 30
	}
	account := azuritetest.Account(t)
	first := newOnAzurite(t, account)
	if _, err := first.queue.Create(t.Context(), nil); err != nil {
		t.Fatal(err)
	}
	if _, err := first.tables.CreateTable(t.Context(), "effects", nil); err != nil {
		t.Fatal(err)
	}
	producer, err := NewProducer(first.queue, nil)
	if err != nil {
		t.Fatal(err)
	}
	var sending errgroup.Group
	sending.SetLimit(16)
	for i := range 2 * n {
		sending.Go(func() error {
			_, err := producer.Send(t.Context(), Outgoing{ID: fmt.Sprintf("m%03d", i%n), Body: []byte("x")})
			return err
		})
	}
	if err := sending.Wait(); err != nil {
		t.Fatal(err)
	}
	var all sync.WaitGroup
	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	consume := func(p onAzurite, ctx context.Context) {
		inbox, err := NewInbox(p.tables.NewClient("effects"), &InboxOptions{KeepExpired: true})
		if err != nil {
			t.Error(err)
			return
		}
		c, err := NewConsumer(p.queue, func(ctx context.Context, m *Message) error {
			return inbox.Apply(ctx, m, "p-"+m.Key[len(m.Key)-1:], func(ctx context.Context, tx *tables.Tx) error {
				var e effect
				there, err := tx.Get(ctx, m.Key, &e)
				if err != nil {
					return err
				}
				e.N++
				if there {
					return tx.Update(m.Key, e)
				}
				return tx.Insert(m.Key, e)
			})
		}, &ConsumerOptions{Dedupe: DedupeInbox, Concurrency: 8, Visibility: 5 * time.Second, MaxAttempts: -1, SoftStop: time.Second, HardStop: time.Second, Poll: pollEvery(200 * time.Millisecond)})
		if err != nil {
			t.Error(err)
			return
		}
		all.Go(func() { _ = c.Run(ctx) })
	}
	dying := newOnAzurite(t, account)
	dying.wire.SetFaults(aztest.Fault{Kind: aztest.LoseRequest, Skip: n / 3}) // for good
	dies, kill := context.WithCancel(ctx)
	defer kill()
	consume(dying, dies)
	consume(newOnAzurite(t, account), ctx)
	consume(newOnAzurite(t, account), ctx)
	for end := time.Now().Add(2 * time.Minute); ; <-time.After(200 * time.Millisecond) {
		p, err := first.queue.GetProperties(t.Context(), nil)
		if err != nil {
			t.Fatal(err)
		}
		if *p.ApproximateMessagesCount == 0 {
			break
		}
		if time.Now().After(end) {
			t.Fatalf("%d messages are left", *p.ApproximateMessagesCount)
		}
	}
	kill()
	stop()
	all.Wait()
	effects, wrong := 0, 0
	for pages := first.tables.NewClient("effects").NewListEntitiesPager(nil); pages.More(); {
		page, err := pages.NextPage(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		for _, raw := range page.Entities {
			var e tables.Properties
			if err := json.Unmarshal(raw, &e); err != nil {
				t.Fatal(err)
			}
			if v, ok := e["n"]; ok {
				if effects++; v.Value != "1" {
					wrong++
				}
			}
		}
	}
	if effects != n || wrong != 0 {
		t.Errorf("%d effects, %d of them not once; want %d", effects, wrong, n)
	}
}
