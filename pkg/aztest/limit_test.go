package aztest

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore/policy"

	"github.com/azconc/azconc/pkg/aztest/bubble"
)

// TestARateLimitsEachResourceByItself: a limit that lets too much through would make every measurement of pacing too good.
func TestARateLimitsEachResourceByItself(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := New(nil)
		s.SetFaults(
			Fault{Kind: Throttle, Rate: 50, Per: PerBlob, RetryAfter: time.Second},
			Fault{Kind: LoseRequest, Match: Op("Delete Blob")}, // what passes a limit meets the faults behind it
		)
		busy, quiet := s.BlockBlob("box", "busy"), s.BlockBlob("box", "quiet")
		ctx := policy.WithRetryOptions(t.Context(), policy.RetryOptions{MaxRetries: -1})
		const every = 4 * time.Millisecond // 250 a second
		passed, answered := 0, ""
		for n := range 500 { // 2 s
			if _, err := busy.GetProperties(ctx, nil); err != nil && n == 499 {
				answered = s.Log()[len(s.Log())-1].Code
			}
			bubble.Sleep(every)
		}
		for _, r := range s.Log() {
			if r.Fault == "" {
				passed++
			}
		}
		if passed < 100 || passed > 105 || answered != "ServerBusy" {
			t.Errorf("%d requests passed in 2 s, want 100 and the 5 that pass at once; the last got %q", passed, answered)
		}
		s.Reset()
		_, _ = quiet.GetProperties(ctx, nil)
		_, _ = quiet.Delete(ctx, nil)
		if log := s.Log(); log[0].Fault != "" || log[1].Fault != LoseRequest {
			t.Errorf("another blob met %v, want no limit and then the fault behind it", log)
		}
	})
}

func TestAPartitionIsTheFirstTwoPartsOfAnEntitysName(t *testing.T) {
	for resource, want := range map[string]string{"orders/p/r": "orders/p", "orders": "orders", "": "", "box/a/b/c": "box/a"} {
		if got := PerPartition(&Request{Resource: resource}); got != want {
			t.Errorf("PerPartition(%q) = %q, want %q", resource, got, want)
		}
	}
}
