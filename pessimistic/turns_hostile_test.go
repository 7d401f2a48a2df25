package pessimistic

import (
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/azconc/azconc/pkg/aztest/bubble"
)

// TestNoRecordOfTurnsKeepsALock: whatever stands where waiters are counted, a waiter gets the lock soon after its release, and the
// metadata of other programs stay. Anybody who may write metadata can write this record, and a later version may have another form.
func TestNoRecordOfTurnsKeepsALock(t *testing.T) {
	year := "31536000000"
	for name, turns := range map[string]string{
		"no numbers":           "\x01 what?",
		"of a later version":   "v2;7;1700000000;350;10;100",
		"with further numbers": "7 1700000000 350 10 100 6 5 4",
		"huge":                 "1 " + strings.Repeat("9", 5000),
		"last number":          "9223372036854775807 1700000000 1000 10 100",
		"longest":              "7 1700000000 " + year + " " + year + " " + year,
		"dead waiters":         "7 1700000000 350 10 100000",
		"far ahead":            "7 9223372036854775807 350 10 100",
		"far behind":           "7 -9223372036854775808 350 10 100",
		"a year ahead":         "7 978307200 86400000 0 100",
		"negative":             "7 1700000000 -1 -1 -1",
	} {
		t.Run(name, func(t *testing.T) {
			inBubble(t, func(t *testing.T, w *world) {
				first, second := w.lockerOf(nil), w.lockerOf(nil)
				h, err := first.Lock(t.Context(), "job", nil)
				if err != nil {
					t.Fatal(err)
				}
				if err := rewrite(t.Context(), w, "job", h.ID(), func(m map[string]string) { m[keyTurns], m["foreign"] = turns, "kept" }); err != nil {
					t.Fatal(err)
				}
				var got time.Time
				over := make(chan struct{})
				go func() {
					defer close(over)
					next, err := second.Lock(t.Context(), "job", &LockOptions{MaxWait: 5 * time.Minute})
					if err != nil {
						t.Error(err)
						return
					}
					got = time.Now()
					mustRelease(t, next.Lease)
				}()
				bubble.Sleep(time.Minute)
				synctest.Wait()
				released := time.Now()
				mustRelease(t, h.Lease)
				<-over
				if late, most := got.Sub(released), second.opts.Poll.Cap+5*time.Second; late < 0 || late > most {
					t.Errorf("the lock was taken %v after its release, want at most %v", late, most)
				}
				again, err := first.Lock(t.Context(), "job", &LockOptions{MaxWait: time.Minute})
				if err != nil {
					t.Fatal(err)
				}
				if m := again.seenMetadata(w); m["foreign"] != "kept" {
					t.Errorf("metadata: %v", m)
				}
				mustRelease(t, again.Lease)
			})
		})
	}
}

func (h *Hold) seenMetadata(w *world) map[string]string {
	p, err := w.Service.BlockBlob("box", h.name).GetProperties(w.T.Context(), nil)
	if err != nil {
		w.T.Fatal(err)
	}
	return lowered(p.Metadata)
}
