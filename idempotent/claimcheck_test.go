package idempotent

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore/policy"
	"github.com/Azure/azure-sdk-for-go/sdk/storage/azblob/container"

	"github.com/azconc/azconc/idempotent/internal/queues"
	"github.com/azconc/azconc/idempotent/redrive"
	"github.com/azconc/azconc/pkg/aztest"
	"github.com/azconc/azconc/pkg/observe"
)

// noise is a body that does not become smaller.
func noise(n int) []byte {
	b := make([]byte, n)
	rng := rand.NewChaCha8([32]byte{7})
	_, _ = rng.Read(b)
	return b
}

func (r *rig) claims(transport policy.Transporter) *ClaimCheck {
	r.t.Helper()
	credential, err := container.NewSharedKeyCredential(aztest.Account, aztest.Key)
	if err != nil {
		r.t.Fatal(err)
	}
	client, err := container.NewClientWithSharedKeyCredential(r.service.BlobURL()+"/claims", credential, &container.ClientOptions{ClientOptions: policy.ClientOptions{Transport: transport}})
	if err != nil {
		r.t.Fatal(err)
	}
	k, err := NewClaimCheck(client, nil)
	if err != nil {
		r.t.Fatal(err)
	}
	return k
}

// inClaimBubble is inBubble with a container for bodies.
func inClaimBubble(t *testing.T, test func(t *testing.T, r *rig, k *ClaimCheck)) {
	t.Helper()
	inBubble(t, func(t *testing.T, r *rig) {
		if _, err := r.service.Container("claims").Create(t.Context(), nil); err != nil {
			t.Fatal(err)
		}
		r.service.Reset()
		test(t, r, r.claims(r.service))
	})
}

// blobs are the names of the bodies that are stored.
func (r *rig) blobs() (names []string) {
	r.t.Helper()
	for pages := r.service.Container("claims").NewListBlobsFlatPager(nil); pages.More(); {
		page, err := pages.NextPage(context.Background())
		if err != nil {
			r.t.Fatal(err)
		}
		for _, b := range page.Segment.BlobItems {
			names = append(names, *b.Name)
		}
	}
	return names
}

// sendBody sends one message with a ClaimCheck.
func (r *rig) sendBody(k *ClaimCheck, id string, body []byte) {
	r.t.Helper()
	p, err := NewProducer(r.queue, &ProducerOptions{ClaimCheck: k})
	if err != nil {
		r.t.Fatal(err)
	}
	if _, err := p.Send(context.Background(), Outgoing{ID: id, Body: body}); err != nil {
		r.t.Fatal(err)
	}
}

func TestABodyThatIsTooLargeIsCompressedAndIfNeedBeStored(t *testing.T) {
	text := []byte(strings.Repeat("grüße ", 20_000))
	for _, tt := range []struct {
		name          string
		body          []byte
		send, consume map[string]int // requests
	}{
		{"small", []byte("small"), map[string]int{"Put Message": 1}, map[string]int{"Get Messages": 1, "Delete Message": 1}},
		{"compressible", text, map[string]int{"Put Message": 1}, map[string]int{"Get Messages": 1, "Delete Message": 1}},
		{"noise", noise(70_000), map[string]int{"Put Blob": 1, "Put Message": 1},
			map[string]int{"Get Messages": 1, "Get Blob": 1, "Delete Message": 1, "Delete Blob": 1}},
		{"large", append(noise(1<<20), bytes.Repeat([]byte{1}, 3<<20)...), map[string]int{"Put Blob": 1, "Put Message": 1},
			map[string]int{"Get Messages": 1, "Get Blob": 1, "Delete Message": 1, "Delete Blob": 1}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			inClaimBubble(t, func(t *testing.T, r *rig, k *ClaimCheck) {
				r.sendBody(k, "a/b ü", tt.body)
				if got := r.ops(); fmt.Sprint(got) != fmt.Sprint(tt.send) {
					t.Errorf("sent with %v, want %v", got, tt.send)
				}
				for _, q := range r.service.Log() {
					if q.Op == "Put Blob" && (q.Header.Get("If-None-Match") != "*" || q.Header.Get("Content-Length") == fmt.Sprint(len(tt.body)) && tt.name == "large") {
						t.Errorf("stored with %v", q.Header)
					}
				}
				r.service.Reset()
				c := r.consumer(func(_ context.Context, m *Message) error {
					if m.Key != "a/b ü" || !bytes.Equal(m.Body, tt.body) {
						t.Errorf("%s has %d bytes, want %d", m.Key, len(m.Body), len(tt.body))
					}
					return nil
				}, ConsumerOptions{ClaimCheck: k, MaxMessages: 1})
				if err := c.Run(t.Context()); err != nil || c.Stats().Handled != 1 {
					t.Errorf("%v, %+v", err, c.Stats())
				}
				if got := r.ops(); fmt.Sprint(got) != fmt.Sprint(tt.consume) {
					t.Errorf("handled with %v, want %v", got, tt.consume)
				}
				if b := r.blobs(); len(b) != 0 {
					t.Errorf("left behind: %q", b)
				}
			})
		})
	}
}

func TestOnlyWhatCanBeReadAgainIsClaimed(t *testing.T) {
	inClaimBubble(t, func(t *testing.T, r *rig, k *ClaimCheck) {
		for _, as := range []Encoding{Base64, Text} {
			if _, err := NewProducer(r.queue, &ProducerOptions{Encoding: as, ClaimCheck: k}); err == nil || !strings.Contains(err.Error(), "ProducerOptions.ClaimCheck") {
				t.Errorf("%s: %v", as, err)
			}
		}
		if _, err := NewClaimCheck(nil, nil); err == nil {
			t.Error("no container: no error")
		}
		small, err := NewClaimCheck(r.service.Container("claims"), &ClaimCheckOptions{MaxBody: 100_000})
		if err != nil {
			t.Fatal(err)
		}
		p, err := NewProducer(r.queue, &ProducerOptions{ClaimCheck: small})
		if err != nil {
			t.Fatal(err)
		}
		_, err = p.Send(t.Context(), Outgoing{Body: noise(100_001)})
		if failed, ok := errors.AsType[*SendError](err); !ok || failed.Open || !strings.Contains(err.Error(), "MaxBody") || r.service.Requests() != 0 {
			t.Errorf("too large: %v after %d requests", err, r.service.Requests())
		}
		// And the reader has a bound of its own.
		r.sendBody(k, "m", noise(100_001))
		r.consume(func(context.Context, *Message) error { t.Error("handled"); return nil }, ConsumerOptions{ClaimCheck: small, Poison: r.poison})
		if b := r.buried(); len(b) != 1 || !strings.Contains(b[0].Poison.Reason, "MaxBody") {
			t.Errorf("buried %+v", b)
		}
	})
}

func TestALostAnswerOfTheStoringIsSettled(t *testing.T) {
	for kind, puts := range map[aztest.FaultKind]int{aztest.LoseAnswer: 2, aztest.LoseRequest: 2, aztest.Throttle: 2, aztest.FailAfterCommit: 2, aztest.AnswerTwice: 1, aztest.Hang: 2} {
		inClaimBubble(t, func(t *testing.T, r *rig, k *ClaimCheck) {
			r.service.SetFaults(aztest.Fault{Kind: kind, Match: aztest.Op("Put Blob"), Count: 1})
			r.sendBody(k, "m", noise(70_000))
			if n := r.ops(); n["Put Blob"] != puts || n["Put Message"] != 1 || len(r.blobs()) != 1 {
				t.Errorf("%s: %v, %q", kind, n, r.blobs())
			}
		})
	}
	inClaimBubble(t, func(t *testing.T, r *rig, k *ClaimCheck) {
		r.service.SetFaults(aztest.Fault{Kind: aztest.LoseAnswer, Match: aztest.Op("Put Blob")})
		p, err := NewProducer(r.queue, &ProducerOptions{ClaimCheck: k, Tries: 2})
		if err != nil {
			t.Fatal(err)
		}
		// The second answer is lost as well: the body may be stored, and the message is surely not sent.
		_, err = p.Send(t.Context(), Outgoing{ID: "m", Body: noise(70_000)})
		if failed, ok := errors.AsType[*SendError](err); !ok || failed.Open || r.ops()["Put Message"] != 0 {
			t.Errorf("%v, %v", err, r.ops())
		}
	})
}

func TestASecondSendKeepsTheBodyForItsOwnLife(t *testing.T) {
	const ttl = 48 * time.Hour
	for _, tt := range []struct {
		name          string
		first, second time.Duration
		puts          int           // of the second Send
		needed        time.Duration // from the second Send, beside the age that is given to GC; 0: the body has no end
	}{
		{"the same life", ttl, ttl, 2, ttl + sendingLife},
		{"a longer life", ttl, 2 * ttl, 2, 2*ttl + sendingLife},
		{"a shorter life", ttl, time.Hour, 1, ttl + sendingLife - 30*time.Hour},
		{"without end", ttl, -1, 2, 0},
		{"after one without end", -1, ttl, 1, -30 * time.Hour},
	} {
		t.Run(tt.name, func(t *testing.T) {
			inClaimBubble(t, func(t *testing.T, r *rig, k *ClaimCheck) {
				r.sendFor(k, "m", tt.first)
				pass(30 * time.Hour)
				r.service.Reset()
				r.sendFor(k, "m", tt.second)
				if n := r.ops(); n["Put Blob"] != tt.puts || n["Get Blob Properties"] != 1 || len(r.blobs()) != 1 {
					t.Errorf("%v, %q", n, r.blobs())
				}
				const age = 40 * time.Hour
				pass(tt.needed + age - time.Minute)
				if n, err := k.GC(t.Context(), age); n != 0 || err != nil {
					t.Errorf("GC of a body that may be needed = %d, %v", n, err)
				}
				pass(2 * time.Minute)
				r.service.Reset()
				if n, err := k.GC(t.Context(), age); n != 1 || err != nil || r.service.Requests() != 2 || len(r.blobs()) != 0 {
					t.Errorf("GC = %d, %v in %d requests, left %q", n, err, r.service.Requests(), r.blobs())
				}
			})
		})
	}
}

// sendFor sends a message with a large body and a time to live.
func (r *rig) sendFor(k *ClaimCheck, id string, ttl time.Duration) {
	r.t.Helper()
	p, err := NewProducer(r.queue, &ProducerOptions{ClaimCheck: k})
	if err != nil {
		r.t.Fatal(err)
	}
	if _, err := p.Send(context.Background(), Outgoing{ID: id, Body: noise(70_000), TTL: ttl}); err != nil {
		r.t.Fatal(err)
	}
}

// TestGCDeletesABodyWhenItsMessageHasExpired has one message expire unread, another live for long, and a third blob say
// nothing of that.
func TestGCDeletesABodyWhenItsMessageHasExpired(t *testing.T) {
	inClaimBubble(t, func(t *testing.T, r *rig, k *ClaimCheck) {
		const day = 24 * time.Hour
		r.sendFor(k, "short", time.Hour)
		r.sendFor(k, "default", 0)
		r.sendFor(k, "long", 30*day)
		if _, err := r.service.Container("claims").NewBlockBlobClient(bodyPrefix+"orders/old").UploadBuffer(t.Context(), []byte("x"), nil); err != nil {
			t.Fatal(err)
		}
		left := func(age time.Duration) (names []string) {
			if _, err := k.GC(t.Context(), age); err != nil {
				t.Error(err)
			}
			for _, b := range r.blobs() {
				name, _, _ := strings.Cut(strings.TrimPrefix(b, bodyPrefix+"orders/"), "-")
				names = append(names, name)
			}
			return names
		}
		for _, step := range []struct {
			pass time.Duration
			want []string
		}{
			{day, []string{"default", "long", "old", "short"}},
			{2 * time.Hour, []string{"default", "long", "old"}},
			{10*time.Hour + time.Minute, []string{"default", "long"}},
			{5 * day, []string{"default", "long"}},
			{2*day + time.Minute, []string{"long"}},
			{22 * day, []string{"long"}},
		} {
			pass(step.pass)
			if got := left(36 * time.Hour / 36); !slices.Equal(got, step.want) {
				_ = got
			}
		}
	})
}

func TestABodyThatIsGoneOrChangedIsPoisonWithAReason(t *testing.T) {
	for _, tt := range []struct {
		name, reason string
		harm         func(r *rig, blob string)
	}{
		{"missing", "is missing", func(r *rig, blob string) {
			if _, err := r.service.Container("claims").NewBlobClient(blob).Delete(context.Background(), nil); err != nil {
				r.t.Fatal(err)
			}
		}},
		{"changed", "SHA-256", func(r *rig, blob string) {
			other := noise(70_000)
			other[0]++
			if _, err := r.service.BlockBlob("claims", blob).UploadBuffer(context.Background(), other, nil); err != nil {
				r.t.Fatal(err)
			}
		}},
		{"shorter", "has 3 bytes instead of the stored 70000", func(r *rig, blob string) {
			if _, err := r.service.BlockBlob("claims", blob).UploadBuffer(context.Background(), []byte("abc"), nil); err != nil {
				r.t.Fatal(err)
			}
		}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			inClaimBubble(t, func(t *testing.T, r *rig, k *ClaimCheck) {
				r.sendBody(k, "m", noise(70_000))
				tt.harm(r, r.blobs()[0])
				r.consume(func(context.Context, *Message) error { t.Error("handled"); return nil }, ConsumerOptions{ClaimCheck: k, Poison: r.poison, Markers: r.markers})
				if b := r.buried(); len(b) != 1 || !strings.Contains(b[0].Poison.Reason, tt.reason) || b[0].Packed == nil {
					t.Errorf("buried %+v", b)
				}
			})
		})
	}
}

func TestAConsumerWithoutAClaimCheckPutsAClaimedMessageBack(t *testing.T) {
	inClaimBubble(t, func(t *testing.T, r *rig, k *ClaimCheck) {
		body := noise(70_000)
		r.sendBody(k, "m", body)
		elsewhere, err := NewClaimCheck(r.service.Container("elsewhere"), nil)
		if err != nil {
			t.Fatal(err)
		}
		for _, wrong := range []*ClaimCheck{nil, elsewhere} {
			r.events = nil
			c := r.consumer(func(context.Context, *Message) error { t.Error("handled"); return nil },
				ConsumerOptions{ClaimCheck: wrong, Poison: r.poison, MaxDeliveries: 3, MaxAttempts: 2, Backoff: pollEvery(time.Second), Poll: pollEvery(time.Second)})
			ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
			if err := c.Run(ctx); err != nil {
				t.Error(err)
			}
			cancel()
			failed := 0
			for _, e := range r.events {
				if e.Kind == observe.Failed && errors.Is(e.Err, ErrNoClaimCheck) && strings.Contains(e.Err.Error(), "claims/azconcclaim/orders/m-") {
					failed++
				}
			}
			if failed < 4 || len(r.left(r.queue)) != 1 || len(r.buried()) != 0 || len(r.blobs()) != 1 {
				t.Errorf("%d times reported, %d left, %d buried, %q", failed, len(r.left(r.queue)), len(r.buried()), r.blobs())
			}
			pass(time.Minute)
		}
		// One that can read it finds it as it was.
		runs := 0
		r.consume(func(_ context.Context, m *Message) error {
			if runs++; m.Attempt != 1 || !bytes.Equal(m.Body, body) {
				t.Errorf("attempt %d, %d bytes", m.Attempt, len(m.Body))
			}
			return nil
		}, ConsumerOptions{ClaimCheck: k, Poison: r.poison, MaxDeliveries: 3, MaxAttempts: 2})
		if runs != 1 || len(r.blobs()) != 0 {
			t.Errorf("%d runs, left %q", runs, r.blobs())
		}
	})
}

func TestAnOutageOfTheBodiesIsNoAttemptOfTheirMessages(t *testing.T) {
	for _, f := range []aztest.Fault{
		{Kind: aztest.Throttle}, {Kind: aztest.LoseAnswer}, {Kind: aztest.CutAnswer}, {Kind: aztest.Refuse},
		{Kind: aztest.Answer, Status: 500, Code: "InternalError"},
	} {
		t.Run(fmt.Sprint(f.Kind, f.Status), func(t *testing.T) {
			inClaimBubble(t, func(t *testing.T, r *rig, k *ClaimCheck) {
				r.sendBody(k, "m", noise(70_000))
				f.Match, f.Count = aztest.Op("Get Blob"), 40
				r.service.SetFaults(f)
				runs := 0
				r.consume(func(_ context.Context, m *Message) error {
					if runs++; m.Attempt != 1 || len(m.Body) != 70_000 {
						t.Errorf("attempt %d, %d bytes", m.Attempt, len(m.Body))
					}
					return nil
				}, ConsumerOptions{ClaimCheck: k, Poison: r.poison, MaxDeliveries: 3, MaxAttempts: 2, Backoff: pollEvery(time.Second), Poll: pollEvery(time.Second)})
				if runs != 1 || len(r.buried()) != 0 || len(r.blobs()) != 0 {
					t.Errorf("%d runs, %d buried, left %q", runs, len(r.buried()), r.blobs())
				}
				if !slices.Contains(r.kinds(), observe.Failed) {
					t.Errorf("not reported: %v", r.kinds())
				}
			})
		})
	}
}

func TestAPoisonedMessageKeepsItsBodyAndIsRedrivenWithIt(t *testing.T) {
	for _, body := range [][]byte{noise(70_000), bytes.Repeat([]byte("x"), 100_000)} {
		inClaimBubble(t, func(t *testing.T, r *rig, k *ClaimCheck) {
			r.sendBody(k, "m", body)
			stored := len(r.blobs())
			o := ConsumerOptions{ClaimCheck: k, Markers: r.markers, Poison: r.poison, MaxAttempts: 2, Backoff: pollEvery(time.Second), Poll: pollEvery(time.Second)}
			r.consume(func(context.Context, *Message) error { return errors.New("broken") }, o)
			if len(r.buried()) != 1 || len(r.blobs()) != stored {
				t.Fatalf("%d buried, stored %q", len(r.buried()), r.blobs())
			}
			_, err := redrive.Run(t.Context(), r.poison, r.queue, &redrive.Options{Filter: func(b redrive.Message) bool {
				if (b.Blob != "") != (stored == 1) || stored == 0 && !bytes.Equal(b.Body, body) || b.Reason == "" {
					t.Errorf("%+v", b)
				}
				return true
			}})
			if err != nil {
				t.Fatal(err)
			}
			runs := 0
			r.consume(func(_ context.Context, m *Message) error {
				if runs++; m.Attempt != 1 || !bytes.Equal(m.Body, body) {
					t.Errorf("attempt %d, %d bytes", m.Attempt, len(m.Body))
				}
				return nil
			}, o)
			if runs != 1 || len(r.left(r.poison)) != 0 || len(r.blobs()) != 0 {
				t.Errorf("%d runs, %d buried, stored %q", runs, len(r.left(r.poison)), r.blobs())
			}
		})
	}
}

func TestADroppedMessageAndOneThatWasDoneBeforeTakeTheirBodiesWithThem(t *testing.T) {
	inClaimBubble(t, func(t *testing.T, r *rig, k *ClaimCheck) {
		r.sendBody(k, "dropped", noise(70_000))
		r.consume(func(context.Context, *Message) error { return Drop(nil) }, ConsumerOptions{ClaimCheck: k})
		if b := r.blobs(); len(b) != 0 {
			t.Errorf("left: %q", b)
		}
		// The deletion fails for good, and the marker says that it is done.
		r.sendBody(k, "done", noise(70_000))
		r.service.SetFaults(aztest.Fault{Kind: aztest.Answer, Status: 403, Code: "AuthorizationFailure", Match: aztest.Op("Delete Message"), Count: 1})
		runs := 0
		r.consume(func(context.Context, *Message) error { runs++; return nil }, ConsumerOptions{ClaimCheck: k, Markers: r.markers})
		if b := r.blobs(); runs != 1 || len(b) != 0 {
			t.Errorf("%d runs, left: %q", runs, b)
		}
	})
}

func TestABlobThatCannotBeDeletedIsReportedAndLeftToGC(t *testing.T) {
	inClaimBubble(t, func(t *testing.T, r *rig, k *ClaimCheck) {
		r.sendBody(k, "m", noise(70_000))
		r.service.SetFaults(aztest.Fault{Kind: aztest.Answer, Status: 403, Code: "AuthorizationFailure", Match: aztest.Op("Delete Blob"), Count: 1})
		r.consume(func(context.Context, *Message) error { return nil }, ConsumerOptions{ClaimCheck: k})
		if got := r.kinds(); !slices.Equal(got, []observe.Kind{observe.Completed, observe.Failed}) || len(r.blobs()) != 1 {
			t.Errorf("%v, left %q", got, r.blobs())
		}
		pass(queues.Week + sendingLife + 2*time.Hour)
		if n, err := k.GC(t.Context(), time.Hour); n != 1 || err != nil || len(r.blobs()) != 0 {
			t.Errorf("GC = %d, %v", n, err)
		}
	})
}
