package cli

import (
	"fmt"
	"strings"
	"time"
)

// progress shows how far a transfer is, on a terminal only and at most ten times a second.
type progress struct {
	f     *Factory
	verb  string
	began time.Time
	shown time.Time
	width int

	hidden bool
}

func (f *Factory) progress(verb string) *progress {
	return &progress{f: f, verb: verb, began: time.Now()}
}

// show reports progress in bytes, and the total if it is known.
func (p *progress) show(done, total int64) {
	if p.hidden || !p.f.ErrTerminal || p.f.Quiet || time.Since(p.shown) < 100*time.Millisecond {
		return
	}
	p.shown = time.Now()
	line := "azconc: " + p.verb + " " + byteCount(done)
	if total > 0 {
		line += fmt.Sprintf(" of %s, %d%%", byteCount(total), done*100/total)
	}
	if s := time.Since(p.began).Seconds(); s > 0.5 {
		line += fmt.Sprintf(", %s/s", byteCount(int64(float64(done)/s)))
	}
	p.print(line)
}

// count reports progress as a count.
func (p *progress) count(n int, what string) {
	if p.hidden || !p.f.ErrTerminal || p.f.Quiet || time.Since(p.shown) < 100*time.Millisecond {
		return
	}
	p.shown = time.Now()
	line := fmt.Sprintf("azconc: %s %d %s", p.verb, n, what)
	if s := time.Since(p.began).Seconds(); s > 0.5 {
		line += fmt.Sprintf(", %.1f/s", float64(n)/s)
	}
	p.print(line)
}

func (p *progress) print(line string) {
	fmt.Fprintf(p.f.Err, "%-*s\r", p.width, line)
	p.width = max(p.width, len(line))
}

// end clears the line for what comes next.
func (p *progress) end() {
	if p.width > 0 {
		fmt.Fprint(p.f.Err, strings.Repeat(" ", p.width)+"\r")
	}
}
