package idempotent

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/storage/azqueue/v2"

	"github.com/azconc/azconc/pkg/aztest"
	"github.com/azconc/azconc/pkg/observe"
)

// TestWhatIsForbiddenEndsTheConsumer: without the right to update, the start of a suspect could not be counted: it was put back for
// ever, and Run ended with nil when the queue was empty. A long handler ended with "lost", and nothing said why.
func TestWhatIsForbiddenEndsTheConsumer(t *testing.T) {
	for _, c := range []struct {
		name, op string
		suspect  bool
		handle   Handler
	}{
		{"a suspect's start is counted", "Update Message", true, func(context.Context, *Message) error { return nil }},
		{"a long handler's message is renewed", "Update Message", false, func(ctx context.Context, _ *Message) error { <-ctx.Done(); return context.Cause(ctx) }},
		{"a failed message is put back", "Update Message", false, func(context.Context, *Message) error { return errors.New("no") }},
		{"a message is postponed", "Update Message", false, func(context.Context, *Message) error { return Postpone(time.Second) }},
	} {
		for _, d := range []Dedupe{DedupeNone, DedupeOwner} {
			t.Run(c.name+"/"+string(d), func(t *testing.T) {
				inBubble(t, func(t *testing.T, r *rig) {
					r.send("m")
					if c.suspect {
						for range 3 {
							r.receiveAndDie(1, time.Second)
							pass(2 * time.Second)
						}
					}
					p := r.process()
					p.wire.SetFaults(aztest.Fault{Kind: aztest.Answer, Status: 403, Code: "AuthorizationPermissionMismatch", Match: aztest.Op(c.op)})
					consumer, err := NewConsumer(p.queue, c.handle, &ConsumerOptions{Markers: p.markers, Dedupe: d, Poison: p.poison, ExitWhenEmpty: true, SoftStop: time.Minute, Visibility: 10 * time.Second})
					if err != nil {
						t.Fatal(err)
					}
					err = consumer.Run(t.Context())
					if err == nil || !strings.Contains(err.Error(), "AuthorizationPermissionMismatch") || !strings.Contains(err.Error(), c.op) || !strings.Contains(err.Error(), "Contributor") {
						t.Errorf("Run: %v", err)
					}
					if len(r.left(r.queue)) != 1 || len(r.buried()) != 0 {
						t.Errorf("%d left, %d buried", len(r.left(r.queue)), len(r.buried()))
					}
				})
			})
		}
	}
}

// TestAMissingPermissionIsToldAtTheStart: a SAS shows what it lacks.
func TestAMissingPermissionIsToldAtTheStart(t *testing.T) {
	for sp, told := range map[string]bool{"p": true, "rp": true, "rup": false, "raup": false} {
		inBubble(t, func(t *testing.T, r *rig) {
			queue, err := azqueue.NewQueueClientWithNoCredential(r.service.QueueURL()+"/orders?sv=2024-08-04&sp="+sp+"&sig=T0PSECRET", &azqueue.ClientOptions{ClientOptions: r.service.ClientOptions()})
			if err != nil {
				t.Fatal(err)
			}
			said := ""
			c, err := NewConsumer(queue, func(context.Context, *Message) error { return nil }, &ConsumerOptions{Dedupe: DedupeNone, ExitWhenEmpty: true,
				Hooks: observe.Hooks{Event: func(_ context.Context, e observe.Event) { said += fmt.Sprint(e.Err) }}})
			if err != nil {
				t.Fatal(err)
			}
			_ = c.Run(t.Context())
			if strings.Contains(said, "no permission u") != told || strings.Contains(said, "T0PSECRET") {
				t.Errorf("%s: %q", sp, said)
			}
		})
	}
}
