package idempotent

import (
	"context"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore/to"
	"github.com/Azure/azure-sdk-for-go/sdk/data/aztables"

	"github.com/azconc/azconc/idempotent/internal/markers"
	stored "github.com/azconc/azconc/idempotent/internal/markers"
	"github.com/azconc/azconc/optimistic/tables"
	"github.com/azconc/azconc/pkg/aztest"
	"github.com/azconc/azconc/pkg/azurite/azuritetest"
)

// remembered is how many entities a table has.
func (r *rig) remembered(table string) (n int) {
	r.t.Helper()
	for pages := r.service.Table(table).NewListEntitiesPager(&aztables.ListEntitiesOptions{Select: to.Ptr("RowKey")}); pages.More(); {
		page, err := pages.NextPage(context.Background())
		if err != nil {
			r.t.Fatal(err)
		}
		n += len(page.Entities)
	}
	return n
}

func TestGCForgetsMessagesThatCannotComeAnyMore(t *testing.T) {
	inBubble(t, func(t *testing.T, r *rig) {
		const n = 250
		for i := range n {
			r.send(fmt.Sprint("k", i))
		}
		never, err := NewProducer(r.queue, nil)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := never.Send(t.Context(), Outgoing{ID: "for ever", Body: []byte("x"), TTL: -1}); err != nil {
			t.Fatal(err)
		}
		r.consume(func(ctx context.Context, m *Message) error {
			return r.inbox.Apply(ctx, m, "it's", func(_ context.Context, tx *tables.Tx) error { return tx.Upsert("effect", effect{N: 1}) })
		}, ConsumerOptions{Markers: r.markers})
		if got := r.remembered("markers"); got != n+1 {
			t.Fatalf("%d markers", got)
		}
		for _, days := range []int{14, 2} { // two weeks in which copies may come, and a day for the clocks
			if got, err := r.markers.GC(t.Context(), "orders"); got != 0 || err != nil {
				t.Errorf("too early: GC = %d, %v", got, err)
			}
			pass(time.Duration(days) * 24 * time.Hour)
		}
		if got, err := r.markers.GC(t.Context(), "order"); got != 0 || err != nil {
			t.Errorf("of another queue: GC = %d, %v", got, err)
		}
		r.service.Reset()
		if got, err := r.markers.GC(t.Context(), "orders"); got != n || err != nil || r.service.Requests() != 1+3 {
			t.Errorf("GC = %d, %v in %d requests, want %d in 4", got, err, r.service.Requests(), n)
		}
		if got := r.remembered("markers"); got != 1 {
			t.Errorf("%d markers are left, want that of the message which never expires", got)
		}
		if got, err := r.inbox.GC(t.Context(), "it's"); got != n || err != nil {
			t.Errorf("Inbox.GC = %d, %v", got, err)
		}
		if got := r.remembered("effects"); got != 2 {
			t.Errorf("%d entities are left, want the effect and the mark of the message which never expires", got)
		}
	})
}

// TestGCLeavesWhatIsWrittenMeanwhile: between the list and the deletion, one key is claimed again, and another is deleted.
func TestGCLeavesWhatIsWrittenMeanwhile(t *testing.T) {
	inBubble(t, func(t *testing.T, r *rig) {
		r.send("a", "b", "c", "d")
		r.consume(func(context.Context, *Message) error { return nil }, ConsumerOptions{Markers: r.markers})
		pass(16 * 24 * time.Hour)
		r.service.SetFaults(aztest.Fault{Kind: aztest.Slow, Match: aztest.Writes, Delay: time.Second, Count: 1})
		var writer sync.WaitGroup
		writer.Go(func() {
			pass(500 * time.Millisecond)
			another := markers.Marker{Owner: "another", State: markers.Owned, Expires: time.Now().Add(time.Hour)}
			if err := r.markers.note(context.Background(), "orders", "b", another); err != nil {
				t.Error(err)
			}
			if _, err := r.service.Table("markers").DeleteEntity(context.Background(), "orders", markers.RowOf("d"), nil); err != nil {
				t.Error(err)
			}
		})
		if got, err := r.markers.GC(t.Context(), "orders"); got != 2 || err != nil {
			t.Errorf("GC = %d, %v", got, err)
		}
		writer.Wait()
		if m, found, err := markers.Find(t.Context(), r.markers.table.Entity("orders", markers.RowOf("b")), r.markers.table.Reading()); !found || err != nil || m.Owner != "another" {
			t.Errorf("%+v, %t, %v", m, found, err)
		}
	})
}

// Markers that a request has deleted whose outcome is unknown were counted, whether or not they were deleted.
func TestALostAnswerDoesNotStopGC(t *testing.T) {
	inBubble(t, func(t *testing.T, r *rig) {
		r.send("a", "b", "c")
		r.consume(func(context.Context, *Message) error { return nil }, ConsumerOptions{Markers: r.markers})
		pass(16 * 24 * time.Hour)
		r.service.SetFaults(aztest.Fault{Kind: aztest.LoseAnswer, Match: aztest.Writes, Count: 1})
		if got, err := r.markers.GC(t.Context(), "orders"); got != 0 || err != nil || r.remembered("markers") != 0 {
			t.Errorf("GC = %d, %v, want none that is not known to be deleted", got, err)
		}
	})
}

// TestGCOnAzurite: the filter, the ETags of a list and a deletion on condition of them are a real server's.
func TestGCOnAzurite(t *testing.T) {
	p := newOnAzurite(t, azuritetest.Account(t))
	if _, err := p.tables.CreateTable(t.Context(), "markers", nil); err != nil {
		t.Fatal(err)
	}
	table := p.tables.NewClient("markers")
	markers, err := NewMarkers(table, &MarkersOptions{KeepExpired: true})
	if err != nil {
		t.Fatal(err)
	}
	inbox, err := NewInbox(table, &InboxOptions{KeepExpired: true})
	if err != nil {
		t.Fatal(err)
	}
	inbox.keep = -48 * time.Hour // what counts here is when the message expires
	for i := range 120 {
		m := &Message{ID: fmt.Sprint(i), Key: fmt.Sprint("k", i), Queue: "orders", Expires: time.Now().Add(-25 * time.Hour)}
		if i%40 == 0 {
			m.Expires = time.Now().Add(-23 * time.Hour) // not a day ago
		}
		if err := markers.note(t.Context(), "orders", m.Key, stored.Marker{Owner: m.ID, State: stored.Done, Expires: m.Expires}); err != nil {
			t.Fatal(err)
		}
		if err := inbox.Apply(t.Context(), m, "it's", func(context.Context, *tables.Tx) error { return nil }); err != nil {
			t.Fatal(err)
		}
	}
	if n, err := markers.GC(t.Context(), "orders"); n != 117 || err != nil {
		t.Errorf("Markers.GC = %d, %v", n, err)
	}
	if n, err := inbox.GC(t.Context(), "it's"); n != 117 || err != nil {
		t.Errorf("Inbox.GC = %d, %v", n, err)
	}
	for pages := table.NewListEntitiesPager(nil); pages.More(); {
		page, err := pages.NextPage(t.Context())
		if err != nil || len(page.Entities) != 2*3 {
			t.Errorf("%d are left, %v", len(page.Entities), err)
		}
	}
}
