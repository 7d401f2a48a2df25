package idempotent

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"testing"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/storage/azqueue"

	"github.com/azconc/azconc/idempotent/claimcheck"
	"github.com/azconc/azconc/idempotent/internal/format"
	"github.com/azconc/azconc/idempotent/internal/markers"
	"github.com/azconc/azconc/idempotent/redrive"
	"github.com/azconc/azconc/optimistic"
	"github.com/azconc/azconc/optimistic/tables"
	"github.com/azconc/azconc/pkg/observe"
)

// earlierMarkers are the markers of a claim as each version has written them, by what was new. Those of the first three
// versions have no "until": deleting the owner was the record that it was handled.
var earlierMarkers = []struct {
	name string
	adds map[string]any
}{
	{"a claim", nil},
	{"a result", map[string]any{"result": "", "result@odata.type": "Edm.Binary"}},
	{"a session", map[string]any{"session": "devstoreaccount1/sessions/azconcsession/gone", "delivery": 1, "waited": 0, "freed": 0}},
}

// putMarker stores a marker without "until", as an earlier version did.
func (r *rig) putMarker(key, owner, state string, expires time.Time, adds map[string]any) {
	r.t.Helper()
	e := map[string]any{
		"PartitionKey": markers.PartitionOf("orders", key), "RowKey": markers.RowOf(key), "owner": owner, "state": state,
		"expires": expires.UTC().Format("2006-01-02T15:04:05.0000000Z"), "expires@odata.type": "Edm.DateTime",
	}
	maps.Copy(e, adds)
	text, err := json.Marshal(e)
	if err != nil {
		r.t.Fatal(err)
	}
	if _, err := r.service.Table("markers").AddEntity(context.Background(), text, nil); err != nil {
		r.t.Fatal(err)
	}
}

// The marker of a message that an earlier version had claimed said that a copy was handled. The copy was deleted, and with
// it its body and the claimed message itself, if it was received with the copy or fetched its body later: nothing was handled.
func TestAMessageThatAnEarlierVersionClaimedIsHandled(t *testing.T) {
	for _, f := range earlierMarkers {
		for _, dedupe := range []Dedupe{DedupeOwner, DedupeComplete} {
			for _, owner := range []int{0, 1, 2} { // its place among the copies
				t.Run(fmt.Sprint(f.name, "/", dedupe, "/", owner), func(t *testing.T) {
					inClaimBubble(t, func(t *testing.T, r *rig, k *claimcheck.ClaimCheck) {
						p, err := NewProducer(r.queue, &ProducerOptions{ClaimCheck: k})
						if err != nil {
							t.Fatal(err)
						}
						for i := range 3 {
							sent, err := p.Send(t.Context(), Outgoing{ID: "m", Body: noise(70_000), TTL: time.Hour})
							if err != nil {
								t.Fatal(err)
							}
							if i == owner {
								r.putMarker("m", sent.MessageID, markers.Owned, sent.Expires, f.adds)
							}
						}
						var runs tally
						r.consume(func(_ context.Context, m *Message) error { runs.add(fmt.Sprint(m.Key, len(m.Body))); return nil },
							ConsumerOptions{Markers: r.markers, Dedupe: dedupe, ClaimCheck: k, Poison: r.poison})
						if runs.n["m70000"] != 1 || len(runs.n) != 1 {
							t.Errorf("handled %v, %d poison: %v", runs.n, len(r.buried()), r.kinds())
						}
						if left, bodies := len(r.left(r.queue)), r.blobs(); left != 0 || len(bodies) != 0 {
							t.Errorf("%d messages and %q left", left, bodies)
						}
					})
				})
			}
		}
	}
}

// A copy whose claimed message is not there is deleted, as by the version that has written the marker: its message was
// handled or will be, since only deleting it recorded that. Its body stays: that is not known.
func TestACopyOfWhatAnEarlierVersionClaimedIsDeletedWithoutItsBody(t *testing.T) {
	inClaimBubble(t, func(t *testing.T, r *rig, k *claimcheck.ClaimCheck) {
		r.sendBody(k, "m", noise(70_000))
		r.putMarker("m", "another", markers.Owned, time.Now().Add(time.Hour), nil)
		c := r.consume(func(context.Context, *Message) error { return nil }, ConsumerOptions{Markers: r.markers, ClaimCheck: k})
		if c.Stats().Handled != 0 || !slices.Equal(r.kinds(), []observe.Kind{observe.Duplicate}) || len(r.blobs()) != 1 {
			t.Errorf("%d handled, %v, bodies %q", c.Stats().Handled, r.kinds(), r.blobs())
		}
	})
}

// earlierTexts are texts as each version has written them, by what was new, with what they say.
var earlierTexts = []struct {
	name, text string
	want       format.Message
}{
	{"text", `{"azconc":1,"id":"m","sent":"2026-11-21T04:13:04Z","text":"hello"}`, format.Message{}},
	{"binary", `{"azconc":1,"id":"m","sent":"2026-11-21T04:13:04Z","binary":"aGVsbG8="}`, format.Message{Binary: []byte("hello")}},
	{"an attempt", `{"azconc":1,"id":"m","sent":"2026-11-21T04:13:04Z","attempts":2,"last_error":"no","text":"hello"}`, format.Message{Attempts: 2, LastError: "no"}},
	{"excused", `{"azconc":1,"id":"m","sent":"2026-11-21T04:13:04Z","excused":3,"text":"hello"}`, format.Message{Excused: 3}},
	{"compressed", `{"azconc":1,"id":"m","sent":"2026-11-21T04:13:04Z","packed":{"gzip":"H4sIAAAAAAAA/8pIzcnJBwQAAP//hqYQNgUAAAA=","length":5,"sha256":"LPJNul+wow4m6DsqxbninhsWHlwfp0JecwQzYpOLmCQ="}}`,
		format.Message{Packed: &format.Packed{Length: 5}}},
	{"given back", `{"azconc":1,"id":"m","sent":"2026-11-21T04:13:04Z","freed":"a27e57a2/4","text":"hello"}`, format.Message{Freed: "a27e57a2/4"}},
	{"headers", `{"azconc":1,"id":"m","sent":"2026-11-21T04:13:04Z","headers":{"a":"b"},"text":"hello"}`, format.Message{Headers: map[string]string{"a": "b"}}},
	{"unfinished", `{"azconc":1,"id":"m","sent":"2026-11-21T04:13:04Z","unfinished":1,"text":"hello"}`, format.Message{Unfinished: 1}},
}

func TestMessagesOfEarlierVersionsAreHandled(t *testing.T) {
	for _, f := range earlierTexts {
		t.Run(f.name, func(t *testing.T) {
			e := format.Detect(f.text)
			if e.ID != "m" || e.Sent.IsZero() || e.Attempts != f.want.Attempts || e.Excused != f.want.Excused || e.Unfinished != f.want.Unfinished ||
				e.LastError != f.want.LastError || e.Freed != f.want.Freed || !maps.Equal(e.Headers, f.want.Headers) {
				t.Errorf("read as %+v", e)
			}
			inBubble(t, func(t *testing.T, r *rig) {
				if _, err := r.queue.EnqueueMessage(t.Context(), f.text, nil); err != nil {
					t.Fatal(err)
				}
				var got *Message
				r.consume(func(_ context.Context, m *Message) error { got = m; return nil }, ConsumerOptions{Markers: r.markers})
				if got == nil || got.Key != "m" || string(got.Body) != "hello" || got.Attempt != f.want.Attempts+1 || got.LastError != f.want.LastError {
					t.Errorf("handled as %+v", got)
				}
			})
		})
	}
}

// The first version put messages of other senders into an envelope when they were poison, and did not know when they expire.
func TestPoisonOfEarlierVersionsIsRedriven(t *testing.T) {
	for text, want := range map[string]string{
		`{"azconc":1,"id":"m","sent":"2026-11-21T04:13:04Z","attempts":5,"last_error":"no","poison":{"reason":"failed 5 times: no","queue":"orders","message_id":"a27e57a2","inserted":"2026-11-21T04:13:04Z","deliveries":5,"encoding":"envelope"},"text":"hello"}`: `{"azconc":1,"id":"m","sent":"2026-11-21T04:13:04Z","text":"hello"}`,
		`{"azconc":1,"id":"a27e57a2","sent":"2026-11-21T04:13:04Z","poison":{"reason":"no","queue":"orders","message_id":"a27e57a2","inserted":"2026-11-21T04:13:04Z","deliveries":5,"encoding":"base64"},"text":"hello"}`:                                           "aGVsbG8=",
		`{"azconc":1,"id":"a27e57a2","sent":"2026-11-21T04:13:04Z","poison":{"reason":"no","queue":"orders","message_id":"a27e57a2","inserted":"2026-11-21T04:13:04Z","deliveries":5,"encoding":"text"},"text":"hello"}`:                                             "hello",
	} {
		inBubble(t, func(t *testing.T, r *rig) {
			if _, err := r.poison.EnqueueMessage(t.Context(), text, &azqueue.EnqueueMessageOptions{TimeToLive: forEver}); err != nil {
				t.Fatal(err)
			}
			var moved redrive.Message
			if _, err := redrive.Run(t.Context(), r.poison, r.queue, &redrive.Options{Each: func(b redrive.Message) { moved = b }}); err != nil {
				t.Fatal(err)
			}
			if got := peekTexts(t, r.queue); len(got) != 1 || got[0] != want || moved.Queue != "orders" || moved.Reason == "" || moved.Deliveries != 5 {
				t.Errorf("redriven %q, want %q: %+v", got, want, moved)
			}
		})
	}
}

// A consumer of an earlier version handles a message that this one has sent or put back, if it uses nothing newer, and it finds
// the marker. These are what it reads.
func TestEarlierVersionsReadWhatIsStored(t *testing.T) {
	text, err := format.Message{ID: "m", Sent: time.Unix(0, 0).UTC(), Attempts: 2, Excused: 1, LastError: "no", Freed: "x", Body: []byte("hello")}.Encode(format.Envelope)
	if err != nil {
		t.Fatal(err)
	}
	var first struct {
		Version   int       `json:"azconc"`
		ID        string    `json:"id"`
		Sent      time.Time `json:"sent"`
		Attempts  int       `json:"attempts,omitempty"`
		LastError string    `json:"last_error,omitempty"`
		Text      string    `json:"text,omitempty"`
	}
	if err := json.Unmarshal([]byte(text), &first); err != nil || first.Version != 1 || first.ID != "m" || first.Attempts != 2 || first.LastError != "no" || first.Text != "hello" {
		t.Errorf("%v: %+v", err, first)
	}
	inBubble(t, func(t *testing.T, r *rig) {
		for state, handle := range map[string]Handler{
			markers.Owned:    func(context.Context, *Message) error { return errors.New("later") },
			markers.Done:     func(context.Context, *Message) error { return nil },
			markers.Poisoned: func(context.Context, *Message) error { return Poison(errors.New("broken")) },
		} {
			p, err := NewProducer(r.queue, nil)
			if err != nil {
				t.Fatal(err)
			}
			sent, err := p.Send(t.Context(), Outgoing{ID: state})
			if err != nil {
				t.Fatal(err)
			}
			if err := r.consumer(handle, ConsumerOptions{Markers: r.markers, Poison: r.poison, ExitWhenEmpty: true}).Run(t.Context()); err != nil {
				t.Fatal(err)
			}
			v, err := optimistic.Read(t.Context(), tables.NewEntity[struct {
				Owner   string    `json:"owner"`
				State   string    `json:"state"`
				Expires time.Time `json:"expires"`
			}](r.service.Table("markers"), "orders", "k-"+state), nil)
			if m := v.Value; err != nil || m.Owner != sent.MessageID || m.State != state || !m.Expires.After(sent.Expires) {
				t.Errorf("%s: %v, %+v", state, err, v)
			}
		}
	})
}
