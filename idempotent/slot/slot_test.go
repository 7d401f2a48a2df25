package slot

import (
	"context"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/storage/azblob/container"

	"github.com/azconc/azconc/pkg/aztest"
)

func shows(now time.Time) func(context.Context) (time.Time, error) {
	return func(context.Context) (time.Time, error) { return now, nil }
}

// TestAStartBelongsToItsSlot: as far off as the documentation says, and no farther.
func TestAStartBelongsToItsSlot(t *testing.T) {
	for _, test := range []struct {
		expression, now string // with seconds
		tolerance       time.Duration
		want            string
	}{
		{"*/5 * * * *", "2026-11-22T12:00:00Z", 0, "12:00"},
		{"*/5 * * * *", "2026-11-22T11:59:30Z", 0, "12:00"},
		{"*/5 * * * *", "2026-11-22T11:59:29Z", 0, "11:55"},
		{"*/5 * * * *", "2026-11-22T12:04:29Z", 0, "12:00"},
		{"*/5 * * * *", "2026-11-22T12:02:29Z", 2 * time.Minute, "12:00"},
		{"*/5 * * * *", "2026-11-22T12:03:00Z", 2 * time.Minute, "12:05"},
		{"* * * * *", "2026-11-22T12:00:31Z", 0, "12:00"},
		{"* * * * *", "2026-11-22T12:00:32Z", 0, "12:01"},
		{"0,1 12 * * *", "2026-11-22T11:59:31Z", 0, "11:59:31 belongs to the day before"},
		{"0 3 * * *", "2026-11-22T15:00:00Z", 0, "03:00"},
	} {
		now, err := time.Parse(time.RFC3339, test.now)
		if err != nil {
			t.Fatal(err)
		}
		due, err := parsed(t, test.expression, "").Due(t.Context(), shows(now), test.tolerance)
		got := due.At.Format("15:04")
		if due.At.Day() != 22 {
			got = now.Format("15:04:05") + " belongs to the day before"
		}
		if err != nil || got != test.want {
			t.Errorf("%s at %s with %v: %v, %v, want %s", test.expression, test.now, test.tolerance, due.At, err, test.want)
		}
		if err == nil && due.Until <= 0 {
			t.Errorf("%s at %s: %v are left of %v", test.expression, test.now, due.Until, due)
		}
	}
}

func TestAToleranceThatCannotBeKeptIsRefused(t *testing.T) {
	now := at(t, "2026-11-22T12:00Z")
	for tolerance, want := range map[time.Duration]string{30 * time.Second: "at most 28s", -1: "negative"} {
		if _, err := parsed(t, "* * * * *", "").Due(t.Context(), shows(now), tolerance); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v: %v, want %q", tolerance, err, want)
		}
	}
}

func TestAStarterNamesTheSlot(t *testing.T) {
	s := parsed(t, "*/5 * * * *", "")
	if due, err := s.At(at(t, "2026-11-22T12:05Z")); err != nil || due.Key("report") != "report@2026-11-22T12:05Z" || due.Until != 5*time.Minute {
		t.Errorf("%v, %v", due, err)
	}
	if _, err := s.At(at(t, "2026-11-22T12:05Z").Add(500 * time.Millisecond)); err == nil || !strings.Contains(err.Error(), "full minute") {
		t.Errorf("half a second after a slot: %v", err)
	}
	if _, err := s.At(at(t, "2026-11-22T12:06Z")); err == nil || !strings.Contains(err.Error(), "12:10") {
		t.Errorf("a time between slots: %v, want the next one named", err)
	}
}

// TestTheClockIsTheServices: any of its responses will do, and no other.
func TestTheClockIsTheServices(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := aztest.New(nil)
		now, err := ServiceClock(s.Container("missing"))(t.Context())
		if err != nil || time.Since(now).Abs() > 3*time.Second || s.Requests() != 1 {
			t.Errorf("%v, %v in %d requests", now, err, s.Requests())
		}
		o := s.ClientOptions()
		o.Transport = answer{"Date": {"Thu, 01 Jan 2026 00:00:00 GMT"}}
		c, err := container.NewClientWithNoCredential(s.Container("missing").URL(), &container.ClientOptions{ClientOptions: o})
		if err != nil {
			t.Fatal(err)
		}
		if now, err := ServiceClock(c)(t.Context()); err == nil {
			t.Errorf("the time of a login page was taken: %v", now)
		}
	})
}

// answer is what something in between answers to all requests.
type answer http.Header

func (a answer) Do(r *http.Request) (*http.Response, error) {
	return &http.Response{StatusCode: http.StatusOK, Request: r, Header: http.Header(a), Body: http.NoBody}, nil
}
