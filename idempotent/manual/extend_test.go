package manual

import (
	"errors"
	"net/http"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/azconc/azconc/idempotent"
	"github.com/azconc/azconc/pkg/azerr"
	"github.com/azconc/azconc/pkg/aztest"
)

func TestAnExtensionKeepsTheTextAndChangesTheReceipt(t *testing.T) {
	inBubble(t, func(t *testing.T, r *rig) {
		r.send("a")
		m := r.received()
		r.service.Reset()
		e, err := Extend(t.Context(), r.queue, m, time.Minute, nil)
		if err != nil || e.PopReceipt == m.PopReceipt || e.PopReceipt == "" || r.service.Requests() != 1 {
			t.Fatalf("%+v, %v after %d requests", e, err, r.service.Requests())
		}
		if _, err := Extend(t.Context(), r.queue, m, 0, nil); !errors.Is(err, idempotent.ErrOwnershipLost) {
			t.Errorf("the old receipt: %v", err)
		}
		extended := m
		extended.PopReceipt, extended.HeldUntil = e.PopReceipt, e.HeldUntil
		if _, err := Extend(t.Context(), r.queue, extended, 0, nil); err != nil {
			t.Error(err)
		}
		if again := r.received(); again.Text != m.Text {
			t.Errorf("the text is %q, was %q", again.Text, m.Text)
		}
	})
}

func TestAnExtensionWhoseAnswerIsLostSaysSo(t *testing.T) {
	for _, kind := range []aztest.FaultKind{aztest.LoseAnswer, aztest.FailAfterCommit, aztest.LoseRequest, aztest.Throttle} {
		inBubble(t, func(t *testing.T, r *rig) {
			r.send("a")
			p := r.process()
			m := r.received()
			p.wire.SetFaults(aztest.Fault{Kind: kind, Count: 1})
			_, err := Extend(t.Context(), p.queue, m, time.Minute, nil)
			lost := kind == aztest.LoseAnswer || kind == aztest.FailAfterCommit
			if lost != errors.Is(err, ErrReceiptUnknown) || !lost && err != nil {
				t.Errorf("%s: %v", kind, err)
			}
		})
	}
}

// "The message was hidden" stood beside "it may not have been applied".
func TestAnExtensionThatNothingProvesIsUnknown(t *testing.T) {
	for _, kind := range []aztest.FaultKind{aztest.LoseAnswer, aztest.LoseRequest} {
		inBubble(t, func(t *testing.T, r *rig) {
			r.send("a")
			p := r.process()
			m := r.received()
			p.wire.SetFaults(aztest.Fault{Kind: kind})
			_, err := Extend(t.Context(), p.queue, m, time.Minute, nil)
			if !errors.Is(err, ErrOutcomeUnknown) || errors.Is(err, ErrReceiptUnknown) || !strings.Contains(err.Error(), "it may be hidden for longer") {
				t.Errorf("%s: %v", kind, err)
			}
		})
	}
}

// The SDK alone would replace the text by an empty one.
func TestWithoutThePolicyNothingIsWiped(t *testing.T) {
	inBubble(t, func(t *testing.T, r *rig) {
		r.send("a")
		bare := r.service.QueueService().NewQueueClient("orders")
		m := r.received()
		if _, err := Extend(t.Context(), bare, m, time.Second, nil); err == nil || !strings.Contains(err.Error(), "Policy") || errors.Is(err, idempotent.ErrOwnershipLost) {
			t.Errorf("err = %v", err)
		}
		if log := r.service.Log(); strings.Contains(log[len(log)-1].Query.Encode(), url.QueryEscape(m.PopReceipt)) {
			t.Errorf("the receipt was sent: %v", log[len(log)-1])
		}
		pass(time.Minute)
		if again := r.received(); again.Text != m.Text {
			t.Errorf("the text is %q, was %q", again.Text, m.Text)
		}
		for _, bad := range []time.Duration{-time.Second, time.Second / 2, 8 * 24 * time.Hour} {
			if _, err := Extend(t.Context(), r.queue, m, bad, nil); err == nil {
				t.Errorf("%v: no error", bad)
			}
		}
	})
}

// An account responds 400 InvalidQueryParameterValue to a pop receipt that is none, and to one that is not current. The first is the
// fault of the caller that typed it, and the second shows that the message is no longer held.
func TestAReceiptThatTheServiceDoesNotTakeForOne(t *testing.T) {
	for _, typed := range []bool{false, true} {
		inBubble(t, func(t *testing.T, r *rig) {
			p := r.process()
			r.send("m")
			m := r.received()
			if !typed {
				m.HeldUntil = time.Now().Add(30 * time.Second)
			}
			p.wire.SetFaults(aztest.Fault{Kind: aztest.Answer, Status: http.StatusBadRequest, Code: "InvalidQueryParameterValue"})
			_, extended := Extend(t.Context(), p.queue, m, time.Minute, nil)
			lost, deleted := Delete(t.Context(), p.queue, m, nil)
			for op, err := range map[string]error{"extend": extended, "delete": deleted} {
				if errors.Is(err, idempotent.ErrOwnershipLost) == typed || typed && azerr.Classify(err).Kind != azerr.BadInput || lost != 0 {
					t.Errorf("%s, typed %t: %v", op, typed, err)
				}
			}
			if n := p.wire.Requests(); n != 2 {
				t.Errorf("typed %t: %d requests", typed, n)
			}
		})
	}
}

// What a user has typed was right if a lost request has used it up.
func TestAReceiptThatALostRequestHasUsedUpWasNotMistyped(t *testing.T) {
	stale := aztest.Fault{Kind: aztest.Answer, Status: http.StatusBadRequest, Code: "InvalidQueryParameterValue", Skip: 1}
	inBubble(t, func(t *testing.T, r *rig) {
		p := r.process()
		r.send("m")
		p.wire.SetFaults(aztest.Fault{Kind: aztest.LoseAnswer, Count: 1}, stale)
		if _, err := Extend(t.Context(), p.queue, r.received(), time.Minute, nil); !errors.Is(err, ErrReceiptUnknown) {
			t.Errorf("extend: %v", err)
		}
	})
	inBubble(t, func(t *testing.T, r *rig) {
		p := r.process()
		r.send("m")
		p.wire.SetFaults(aztest.Fault{Kind: aztest.LoseAnswer, Count: 1}, stale)
		lost, err := Delete(t.Context(), p.queue, r.received(), nil)
		if unknown, ok := errors.AsType[*UnknownError](err); !ok || !errors.Is(err, ErrOutcomeUnknown) || lost != 1 || !strings.HasPrefix(unknown.Resource, "orders/messages/") {
			t.Errorf("delete: %d, %v", lost, err)
		}
	})
}
