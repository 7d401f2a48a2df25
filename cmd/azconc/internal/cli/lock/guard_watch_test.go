package lock

import (
	"context"
	"errors"
	"runtime"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/azconc/azconc/cmd/azconc/internal/cli/fail"
	"github.com/azconc/azconc/cmd/azconc/internal/proc"
	"github.com/azconc/azconc/pessimistic"
	"github.com/azconc/azconc/pkg/aztest/bubble"
)

// tenancy is something held, as far as a command under it needs to know.
type tenancy struct {
	ctx  context.Context
	end  context.CancelCauseFunc
	gone atomic.Pointer[pessimistic.LostError]

	breaking func(context.Context) (time.Duration, error)
}

func newTenancy() *tenancy {
	h := &tenancy{}
	h.ctx, h.end = context.WithCancelCause(context.Background())
	return h
}

func (h *tenancy) Context() context.Context { return h.ctx }
func (h *tenancy) Valid() bool              { return h.gone.Load() == nil }
func (h *tenancy) Remaining() (stop, end time.Duration, changed <-chan struct{}) {
	return pessimistic.Endless, pessimistic.Endless, nil
}

func (h *tenancy) Err() error {
	if lost := h.gone.Load(); lost != nil {
		return lost
	}
	return nil
}

// slowly is held for a minute from when it is asked, and takes its time to say so, as on a machine whose processors are not free.
type slowly struct {
	*tenancy
	asked proc.Deadline
}

func (h *slowly) Remaining() (stop, end time.Duration, changed <-chan struct{}) {
	for h.asked = proc.After(0); proc.After(0) < h.asked+proc.Deadline(time.Millisecond); {
		runtime.Gosched()
	}
	return time.Minute, time.Minute, nil
}

// A deadline was counted from when azconc got to it: where it had waited for a processor, everything ended as much later.
func TestADeadlineIsCountedFromBeforeTheQuestion(t *testing.T) {
	if proc.After(0) == 0 {
		t.Skip("SKIP: no watchdog on this system")
	}
	h := &slowly{tenancy: newTenancy()}
	if d, _ := (&watch{held: h}).deadline(); d > h.asked+proc.Deadline(time.Minute-releaseMargin) {
		t.Errorf("the deadline is %v late", time.Duration(d-h.asked)-time.Minute+releaseMargin)
	}
}

// ordered records what a watch requested, and when.
type ordered struct{ after, grace time.Duration }

// watched runs act under the watch, and returns what the watch has asked for within a minute.
func watched(t *testing.T, ctx context.Context, h *tenancy, act func()) (all []ordered) {
	t.Helper()
	began := time.Now()
	over, finished := make(chan struct{}), make(chan struct{})
	w := &watch{
		killAfter: 10 * time.Second, held: h, status: &statusLines{}, breaking: h.breaking,
		stop: make(chan time.Duration), deadlines: make(chan proc.Deadline), finished: finished,
	}
	go func() {
		defer close(over)
		w.run(ctx, nil)
	}()
	go act()
	minute := time.After(time.Minute)
	for {
		select {
		case d := <-w.stop:
			all = append(all, ordered{time.Since(began), d})
		case <-w.deadlines:
		case <-minute:
			close(finished)
			<-over
			return all
		}
	}
}

func doubt(elapsed time.Duration) *pessimistic.LostError {
	return &pessimistic.LostError{Resource: "jobs/x", Reason: pessimistic.Stopped, Duration: 30 * time.Second, Elapsed: elapsed}
}

func TestACommandGetsTheTimeThatItsLeaseLeaves(t *testing.T) {
	for _, c := range []struct {
		name string
		lost *pessimistic.LostError
		want time.Duration
	}{
		{"in time", doubt(20 * time.Second), 30*time.Second - 20*time.Second - releaseMargin},
		{"late", doubt(29 * time.Second), 500 * time.Millisecond},
		{"too late", doubt(40 * time.Second), 30*time.Second - 40*time.Second - releaseMargin},
		{"taken", &pessimistic.LostError{Reason: pessimistic.Taken, Duration: 30 * time.Second}, 0},
	} {
		synctest.Test(t, func(t *testing.T) {
			h := newTenancy()
			got := watched(t, t.Context(), h, func() {
				h.end(c.lost)
			})
			if len(got) != 1 || got[0] != (ordered{0, c.want}) {
				t.Errorf("%s: %v, want %v at once", c.name, got, c.want)
			}
		})
	}
}

// While a lease is being broken it is still the holder's.
func TestACommandGetsTheTimeThatABreakLeaves(t *testing.T) {
	breaking := &pessimistic.LostError{Resource: "jobs/x", Reason: pessimistic.Broken, Duration: 30 * time.Second, Elapsed: 10 * time.Second}
	for _, c := range []struct {
		name string
		left time.Duration
		err  error
		want []time.Duration // TERM comes first, in any case
	}{
		{"its natural end", 20 * time.Second, nil, []time.Duration{10 * time.Second, 10 * time.Second}},
		{"a short period", 5 * time.Second, nil, []time.Duration{10 * time.Second, 5*time.Second - roundedUp - releaseMargin}},
		{"over by now", 0, nil, []time.Duration{10 * time.Second, -roundedUp - releaseMargin}},
		{"held by another by now", 0, pessimistic.ErrConflict, []time.Duration{10 * time.Second, -roundedUp - releaseMargin}},
	} {
		synctest.Test(t, func(t *testing.T) {
			h := newTenancy()
			h.breaking = func(context.Context) (time.Duration, error) { return c.left, c.err }
			got := watched(t, t.Context(), h, func() { h.end(breaking) })
			if len(got) != 2 || got[0].grace != c.want[0] || got[1].grace != c.want[1] {
				t.Errorf("%s: %v, want %v", c.name, got, c.want)
			}
		})
	}
}

// A machine that is suspended between TERM and KILL wakes up with a timer that has not moved.
func TestTheGracePeriodEndsWithTheLease(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := newTenancy()
		got := watched(t, t.Context(), h, func() {
			h.end(doubt(20 * time.Second))
			bubble.Sleep(2 * time.Second)
			h.gone.Store(doubt(90 * time.Second))
		})
		if len(got) != 2 || got[1].grace != 0 || got[1].after > 2500*time.Millisecond {
			t.Errorf("%v, want KILL when the lease was seen to be gone", got)
		}
	})
}

func TestATimeoutStopsTheCommandAndASignalDoesNot(t *testing.T) {
	for cause, want := range map[error]int{&fail.SignalError{}: 0, errors.New("timed out"): 1} {
		synctest.Test(t, func(t *testing.T) {
			ctx, cancel := context.WithCancelCause(t.Context())
			got := watched(t, ctx, newTenancy(), func() { cancel(cause) })
			if len(got) != want || want == 1 && got[0].grace != 10*time.Second {
				t.Errorf("%v: %v, want %d orders", cause, got, want)
			}
		})
	}
}

// The lease's own watch looks once a second. A command that ends before that has still run without a lease.
func TestALossThatOnlyTheClocksShowCounts(t *testing.T) {
	h := newTenancy()
	if lost := lossOf(h); lost != nil {
		t.Errorf("held, but lost: %v", lost)
	}
	h.gone.Store(doubt(31 * time.Second))
	if lost := lossOf(h); lost == nil {
		t.Error("lost, but held")
	}
}

// A process that outlived a lost lock was reported with a lease that is kept, although another holder may have it.
func TestALeaseIsNotKeptForAProcessThatOutlivesIt(t *testing.T) {
	for _, c := range []struct {
		err  CommandLeft
		want string
	}{
		{CommandLeft{}, "a process of the command is still running and cannot be stopped; the lease is not released; it expires, unless it is infinite"},
		{CommandLeft{Err: errors.New("no answer")}, "a process of the command may still be running: no answer; the lease is not released; it expires, unless it is infinite"},
		{CommandLeft{Lost: doubt(20 * time.Second)}, "a process of the command is still running and cannot be stopped; the lock is lost: jobs/x: lease in doubt: not renewed for 20s of 30s"},
	} {
		if got := c.err.Error(); got != c.want {
			t.Errorf("%q, want %q", got, c.want)
		}
	}
}
