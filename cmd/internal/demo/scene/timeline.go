package scene

import (
	_ "embed"
	"fmt"
	"html/template"
	"io"
	"slices"
	"strings"
)

//go:embed timeline.html
var timelinePage string

var timelineTemplate = template.Must(template.New("timeline").Parse(timelinePage))

// The sizes of the drawing, in pixels.
const (
	left  = 140 // the names of the clients
	row   = 64
	first = 40 // the lane of the first client
	step  = 52 // the least distance between two times, for the name of an event
	asFar = 60 // what a second adds to it
	limit = 140
)

type drawing struct {
	Result
	Width, Height int
	Lanes         []drawnLane
	Bars          []bar
	Marks         []mark
	Ticks         []tick
}

// tick is a time on the axis.
type tick struct {
	X    int
	Text string
}

type drawnLane struct {
	Name string
	Y    int
}

// bar is a holding or a pause.
type bar struct {
	Class, Title string
	X, Y, Width  int
}

// mark is a request, an event, or the error with which an act ended.
type mark struct {
	Class, Title, Path string
	X, Y               int
	Label              string
	Above              bool // the label is above the mark
}

// The shapes of marks, around their position: shape as well as colour says what it is.
var shapes = map[string]string{
	"done":    "M-5,0a5,5 0 1,0 10,0a5,5 0 1,0 -10,0",
	"refused": "M-5,-5L5,5M-5,5L5,-5",
	"lost":    "M0,-7L7,0L0,7L-7,0Z",
	"other":   "M-4,-4H4V4H-4Z",
	"event":   "M0,-5L5,4H-5Z",
}

// Timeline writes one page of HTML, which loads nothing, with a drawing of each scene: a lane for each client, and in it what was recorded.
// Times are in order, and long waits are drawn shorter than they were.
func Timeline(w io.Writer, results []Result) error {
	var drawn []drawing
	for _, r := range results {
		drawn = append(drawn, draw(r))
	}
	return timelineTemplate.Execute(w, drawn)
}

func draw(r Result) drawing {
	d := drawing{Result: r}
	lanes := map[string]int{}
	laneOf := func(client string) int {
		if _, ok := lanes[client]; !ok {
			lanes[client] = first + row*len(lanes)
			d.Lanes = append(d.Lanes, drawnLane{client, lanes[client]})
		}
		return lanes[client]
	}
	var times []float64
	for _, a := range r.Acts {
		laneOf(a.Client)
		for _, q := range a.Requests {
			times = append(times, q.AtMS)
		}
		if a.Error != "" {
			times = append(times, a.FailedMS)
		}
	}
	for _, e := range r.Events {
		times = append(times, e.AtMS)
		if e.Kind == "paused" {
			times = append(times, e.AtMS+e.TookMS)
		}
	}
	slices.Sort(times)
	at, x, previous := map[float64]int{}, left, 0.0
	for i, t := range slices.Compact(times) {
		if i > 0 {
			x += step + min(limit, int((t-previous)/1000*asFar))
		}
		at[t], previous = x, t
		if n := len(d.Ticks); n == 0 || d.Ticks[n-1].Text != clock(t) {
			d.Ticks = append(d.Ticks, tick{x, clock(t)})
		}
	}
	d.Width, d.Height = x+80, first+row*max(1, len(lanes))
	d.holdings(laneOf, at, x+30)
	for _, a := range r.Acts {
		for _, q := range a.Requests {
			class, label := classOf(q), fmt.Sprint(q.Status)
			title := fmt.Sprintf("%.1f ms: %s %s → %d %s", q.AtMS, q.Method, q.Resource, q.Status, q.Code)
			if q.Lost {
				title += ", response lost"
			}
			d.Marks = append(d.Marks, mark{class, title, shapes[class], at[q.AtMS], laneOf(a.Client), label, false})
		}
		if a.Error != "" {
			d.Marks = append(d.Marks, mark{"refused", a.Does + ": " + a.Error, shapes["refused"], at[a.FailedMS], laneOf(a.Client), "error", false})
		}
	}
	for _, e := range r.Events {
		if e.Kind == "paused" {
			d.Bars = append(d.Bars, bar{"paused", fmt.Sprintf("paused for %.1f s", e.TookMS/1000), at[e.AtMS], laneOf(e.Client) - 3, at[e.AtMS+e.TookMS] - at[e.AtMS]})
			continue
		}
		title, label := fmt.Sprintf("%.1f ms: %s %s %s", e.AtMS, e.Subject, e.Kind, e.Resource), e.Kind
		if e.Error != "" {
			title, label = title+": "+e.Error, label+": error"
		}
		d.Marks = append(d.Marks, mark{"event", title, shapes["event"], at[e.AtMS], laneOf(e.Client) - 16, label, true})
	}
	return d
}

// clock returns a time since the scene began.
func clock(ms float64) string {
	if ms < 1000 {
		return fmt.Sprintf("%.0f ms", ms)
	}
	return fmt.Sprintf("%.2f s", ms/1000)
}

func classOf(q Request) string {
	switch {
	case q.Lost || q.Status == 0:
		return "lost"
	case q.Status == 409 || q.Status == 412 || q.Code != "" && q.Status < 300:
		return "refused"
	case q.Status >= 300:
		return "other"
	}
	return "done"
}

// holding is a lease that a client has.
type holding struct {
	client, resource string
	from             int
	until            float64 // when it ends by itself, 0 if it does not
}

// holdings draws the leases: from the request that acquired each to its release, its break, or its end by itself.
func (d *drawing) holdings(laneOf func(string) int, at map[float64]int, end int) {
	var held []holding
	close := func(h holding, x int, how string) {
		d.Bars = append(d.Bars, bar{"held", h.client + " holds the lease of " + h.resource + ", until it " + how, h.from, laneOf(h.client) - 9, max(4, x-h.from)})
	}
	for _, a := range d.Acts {
		for _, q := range a.Requests {
			action, resource := q.Sent["x-ms-lease-action"], strings.SplitN(q.Resource, "?", 2)[0]
			if q.Status >= 300 || q.Status == 0 || action == "" {
				continue
			}
			if action == "acquire" {
				h := holding{client: a.Client, resource: resource, from: at[q.AtMS]}
				var seconds float64
				if _, err := fmt.Sscan(q.Sent["x-ms-lease-duration"], &seconds); err == nil && seconds > 0 {
					h.until = q.AtMS + 1000*seconds
				}
				held = append(held, h)
				continue
			}
			if action != "release" && action != "break" {
				continue
			}
			held = slices.DeleteFunc(held, func(h holding) bool {
				if h.resource == resource {
					close(h, at[q.AtMS], map[string]string{"release": "was released", "break": "was broken"}[action])
				}
				return h.resource == resource
			})
		}
	}
	for _, h := range held {
		x, how := end, "the scene ended"
		for t, place := range at {
			if h.until > 0 && t >= h.until && place < x {
				x, how = place, "expired"
			}
		}
		close(h, x, how)
	}
}
