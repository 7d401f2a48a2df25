package pessimistic

import (
	"context"
	"net/http"
	"testing"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore/policy"

	"github.com/azconc/azconc/pessimistic/internal/pesstest"
	"github.com/azconc/azconc/pkg/aztest"
	"github.com/azconc/azconc/pkg/aztest/bubble"
	"github.com/azconc/azconc/pkg/retry"
)

// slowly is a network on which the responses to some lease requests arrive late, after the service has carried them out.
type slowly struct {
	policy.Transporter
	action string
	late   time.Duration
}

func (s slowly) Do(r *http.Request) (*http.Response, error) {
	resp, err := s.Transporter.Do(r)
	if err == nil && pesstest.Header(r.Header, "x-ms-lease-action") == s.action {
		if err := retry.Sleep(r.Context(), s.late); err != nil {
			return nil, err
		}
	}
	return resp, err
}

// wantTimed fails the test unless the time of a lease counts from the sending of a request.
func wantTimed(t *testing.T, l *Lease, sent time.Time) {
	t.Helper()
	ran := time.Since(sent)
	if stop, end, _ := l.Remaining(); stop != l.Duration()*2/3-ran || end != l.Duration()-ran {
		t.Errorf("%v after the request was sent %v and %v are left, want %v and %v", ran, stop, end, l.Duration()*2/3-ran, l.Duration()-ran)
	}
	<-l.Context().Done()
	if over := time.Now(); over.Sub(sent) != l.Duration()*2/3 {
		t.Errorf("the work was stopped %v after the request was sent, want %v", over.Sub(sent), l.Duration()*2/3)
	}
}

// TestALeaseThatIsTakenOverIsTimedFromTheRequest: the service restarts the lease's time before its response arrives, and the
// response may take as long as a renewal may.
func TestALeaseThatIsTakenOverIsTimedFromTheRequest(t *testing.T) {
	const late = 4 * time.Second
	inBubble(t, func(t *testing.T, w *world) {
		lost := aztest.Fault{Kind: aztest.Refuse}
		target := NewBlob(w.ContainerOver(slowly{w.Faults, "renew", late}).NewBlockBlobClient("b"))
		first, err := Acquire(t.Context(), target, nil)
		if err != nil {
			t.Fatal(err)
		}
		w.Faults.SetFaults(lost)
		<-first.Context().Done()

		w.Faults.SetFaults()
		sent := time.Now()
		reclaimed, err := first.Reclaim(t.Context())
		if err != nil || time.Since(sent) != late {
			t.Fatalf("reclaimed after %v: %v", time.Since(sent), err)
		}
		w.Faults.SetFaults(lost)
		wantTimed(t, reclaimed, sent)

		w.Faults.SetFaults()
		_, _ = first.Release(context.Background()), reclaimed.Release(context.Background())
	})
}

// TestALockIsTimedFromTheRequest: neither a slow response to the acquisition nor a hand-over adds to the time of the lease.
func TestALockIsTimedFromTheRequest(t *testing.T) {
	const late = 4 * time.Second
	inBubble(t, func(t *testing.T, w *world) {
		k, err := NewLocker(w.ContainerOver(slowly{w.Faults, "acquire", late}), &LockerOptions{QuickFirst: true})
		if err != nil {
			t.Fatal(err)
		}
		sent := time.Now()
		first, err := k.Lock(t.Context(), "job", nil)
		if err != nil || time.Since(sent) != late {
			t.Fatalf("locked after %v: %v", time.Since(sent), err)
		}
		second := make(chan *Hold)
		go func() {
			h, err := k.Lock(context.Background(), "job", nil)
			if err != nil {
				t.Error(err)
			}
			second <- h
		}()
		bubble.Sleep(3 * time.Second)
		w.Reset()
		mustRelease(t, first.lease)
		h := <-second
		w.WantOps("stamp")
		w.Faults.SetFaults(aztest.Fault{Kind: aztest.Refuse})
		wantTimed(t, h.lease, sent)
		w.Faults.SetFaults()
		_ = h.Release(context.Background())
	})
}
