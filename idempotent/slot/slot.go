package slot

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore/policy"
	"github.com/Azure/azure-sdk-for-go/sdk/storage/azblob/container"

	"github.com/azconc/azconc/pkg/azerr"
	"github.com/azconc/azconc/pkg/retry"
	"github.com/azconc/azconc/pkg/wire"
)

// DefaultTolerance is how much earlier than its slot a job may start, by the service's clock.
const DefaultTolerance = 30 * time.Second

// clockStep is by how much the Date of a response may be behind: the service cuts off the second, and took it before it finished
// the request (up to 1.99 s, recorded from real accounts).
const clockStep = 2 * time.Second

// Slot is one time at which a job is due.
type Slot struct {
	At   time.Time // in UTC
	Next time.Time // the slot after it, in UTC

	// Until is how long the slot can still be worked on by a machine that just learned of it: until Next, less the
	// tolerance. Of a slot that a starter names, it is the whole time between At and Next.
	Until time.Duration
}

// keyTime is the form of the time in a key. The keys of one job are in the order of their slots.
const keyTime = "2006-01-02T15:04Z"

// Key returns the key of a job's slot for package once: "report@2026-11-22T12:00Z".
func (s Slot) Key(job string) string { return job + "@" + s.At.Format(keyTime) }

// Due returns the slot for which a job that starts now was started: the last one that begins up to the tolerance from now, by a
// clock that all machines share. A start is attributed to its slot if it is at most the tolerance early and at most the interval
// between slots, less the tolerance and 2 s, late: with a tolerance of 30 s, a job due every five minutes may be started up to
// 30 s too early and 4 min 28 s too late. Skew between the machine that starts it and the service is part of that.
//
// A tolerance of 0 is DefaultTolerance, or less where slots are close: at most half of the interval, less 2 s. Errors: the
// clock's; a tolerance that is larger than that. Requests: those of the clock, one with ServiceClock.
func (s *Schedule) Due(ctx context.Context, clock func(context.Context) (time.Time, error), tolerance time.Duration) (Slot, error) {
	now, err := clock(ctx)
	if err != nil {
		return Slot{}, fmt.Errorf("the time of the slot: %w", err)
	}
	if tolerance < 0 {
		return Slot{}, fmt.Errorf("a tolerance of %v: it must not be negative", tolerance)
	}
	given := tolerance
	if given == 0 {
		tolerance = DefaultTolerance
	}
	for { // of the slot and those around it, the closest decide how large a tolerance can be
		at, err := s.last(now.Add(tolerance))
		if err != nil {
			return Slot{}, err
		}
		next := s.next(at)
		if next.IsZero() {
			return Slot{}, fmt.Errorf("%s is not due within five years of %s", s, at.Format(time.RFC3339))
		}
		limit := (s.shortest(at, next) / 2) - clockStep
		switch {
		case tolerance <= limit:
			return Slot{At: at, Next: next, Until: next.Sub(now) - tolerance}, nil
		case given != 0:
			return Slot{}, fmt.Errorf("a tolerance of %v is too large for slots that are %v apart: give at most %v, or the slot itself", given, next.Sub(at), limit)
		}
		tolerance = limit
	}
}

// shortest returns the shorter one of the intervals before and after a slot.
func (s *Schedule) shortest(at, next time.Time) time.Duration {
	after := next.Sub(at)
	if before, err := s.last(at.Add(-time.Second)); err == nil {
		after = min(after, at.Sub(before))
	}
	return after
}

// At returns the slot that a starter names, such as the time that Kubernetes writes on the Job of a CronJob. Errors: the schedule
// is not due then.
func (s *Schedule) At(at time.Time) (Slot, error) {
	at = at.UTC()
	if !at.Equal(at.Truncate(time.Minute)) {
		return Slot{}, fmt.Errorf("%s is not a full minute, at which slots begin", at.Format(time.RFC3339Nano))
	}
	if next := s.next(at.Add(-time.Second)); !next.Equal(at) {
		return Slot{}, fmt.Errorf("%s is not due at %s; after that, it is at %s", s, at.Format(time.RFC3339), next.Format(time.RFC3339))
	}
	next := s.next(at)
	return Slot{At: at, Next: next, Until: next.Sub(at)}, nil
}

// Before returns up to n slots before one, the latest first.
func (s *Schedule) Before(slot Slot, n int) []Slot {
	var earlier []Slot
	for next := slot.At; len(earlier) < n; {
		at, err := s.last(next.Add(-time.Second))
		if err != nil {
			break
		}
		earlier = append(earlier, Slot{At: at, Next: next})
		next = at
	}
	return earlier
}

// clockTries bounds the tries for the time: about a minute, by which an outage is distinguished from a wrong address.
var clockTries = retry.Budget{Attempts: -1, Elapsed: time.Minute, Backoff: retry.Backoff{Base: time.Second, Cap: 5 * time.Second}}

// ServiceClock returns a clock that reads the Date of a response: one clock for all machines. It asks for the container's
// properties, one request; any response of the service has the time, a refusal too. A service that does not answer is asked
// again for a minute. A proxy that replaces the Date is not noticed.
func ServiceClock(client *container.Client) func(ctx context.Context) (time.Time, error) {
	return func(ctx context.Context) (now time.Time, err error) {
		again := wire.Again{Try: 10 * time.Second, Budget: clockTries}
		_, err = wire.Wire{}.Send(ctx, "Get Container Properties", again, func(ctx context.Context) error {
			var resp *http.Response
			_, err := client.GetProperties(policy.WithCaptureResponse(ctx, &resp), nil)
			if resp == nil {
				return err
			}
			if foreign := azerr.FromService(resp); foreign != nil {
				return foreign
			}
			if now, err = http.ParseTime(resp.Header.Get("Date")); err != nil {
				return errors.New("the response has no Date: name the slot itself")
			}
			return nil
		})
		if err != nil {
			return time.Time{}, azerr.Clean(err)
		}
		return now, nil
	}
}
