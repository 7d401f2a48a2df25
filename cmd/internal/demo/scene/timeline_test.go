package scene

import (
	"slices"
	"strings"
	"testing"
)

// TestTheTimelineShowsErrorsWhereTheyHappened: an act that the library refused had a last request that succeeded, and in the drawing it
// looked like a success.
func TestTheTimelineShowsErrorsWhereTheyHappened(t *testing.T) {
	d := draw(Result{
		Name: "stale", Acts: []Act{
			{Client: "holder 1", Does: "writes", Requests: []Request{{Method: "GET", Resource: "box/a", Status: 200, AtMS: 10}}, Error: "a later holder has written", FailedMS: 12},
			{Client: "holder 2", Does: "writes", Requests: []Request{{Method: "PUT", Resource: "box/a", Status: 201, AtMS: 11}}},
		},
		Events: []Event{{Client: "holder 1", Subject: "lease", Kind: "released", AtMS: 1300, Error: "lease lost"}},
	})
	has := func(class, label, title string, lane int) bool {
		return slices.ContainsFunc(d.Marks, func(m mark) bool {
			return m.Class == class && m.Label == label && strings.Contains(m.Title, title) && m.Y/row == lane
		})
	}
	if !has("refused", "error", "a later holder has written", 0) || !has("event", "released: error", "lease lost", 0) || has("refused", "error", "", 1) {
		t.Errorf("%+v", d.Marks)
	}
	var times []string
	for _, tick := range d.Ticks {
		times = append(times, tick.Text)
	}
	if got := strings.Join(times, " "); got != "10 ms 11 ms 12 ms 1.30 s" {
		t.Errorf("the axis says %s", got)
	}
	var page strings.Builder
	if err := Timeline(&page, []Result{d.Result}); err != nil || strings.Count(page.String(), "a later holder has written") != 2 {
		t.Errorf("the error is not at its mark and in the table: %v", err)
	}
}
