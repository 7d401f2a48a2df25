package manual

import (
	"bytes"
	"strings"
	"testing"

	"github.com/azconc/azconc/idempotent"
)

func TestOpenShowsWhatATextHolds(t *testing.T) {
	inBubble(t, func(t *testing.T, r *rig) {
		k, err := idempotent.NewClaimCheck(r.service.Container("bodies"), nil)
		if err != nil {
			t.Fatal(err)
		}
		p, err := idempotent.NewProducer(r.queue, &idempotent.ProducerOptions{ClaimCheck: k})
		if err != nil {
			t.Fatal(err)
		}
		for _, body := range [][]byte{[]byte("plain"), {0xff}, bytes.Repeat([]byte("x"), 100<<10)} {
			if _, err := p.Send(t.Context(), idempotent.Outgoing{ID: "a", Body: body, Headers: map[string]string{"h": "v"}}); err != nil {
				t.Fatal(err)
			}
			text := r.received().Text
			o, err := Open(text, idempotent.Auto)
			if err != nil || o.Encoding != idempotent.Envelope || o.Key != "a" || o.Headers["h"] != "v" || o.Sent.IsZero() || !bytes.Equal(o.Body, body) {
				t.Errorf("%.40q: %+v, %v", text, o, err)
			}
			if damaged := strings.Replace(text, `"gzip":"H4sI`, `"gzip":"AAAA`, 1); damaged != text {
				if _, err := Open(damaged, idempotent.Auto); err == nil {
					t.Error("a damaged body is shown")
				}
			}
			if _, err := r.queue.ClearMessages(t.Context(), nil); err != nil {
				t.Fatal(err)
			}
		}
		o, err := Open(`{"azconc":1,"id":"b","attempts":2,"last_error":"no","poison":{"reason":"broken"},"packed":{"container":"c","blob":"d","length":1}}`, idempotent.Auto)
		if err != nil || o.Attempts != 2 || o.LastError != "no" || o.Reason != "broken" || o.Blob != "c/d" || o.Body != nil {
			t.Errorf("%+v, %v", o, err)
		}
		if o, err := Open("aGk=", idempotent.Auto); err != nil || o.Encoding != idempotent.Base64 || string(o.Body) != "hi" || o.Key != "" {
			t.Errorf("%+v, %v", o, err)
		}
		if _, err := Open("no!", idempotent.Base64); err == nil {
			t.Error("that is base64")
		}
	})
}
