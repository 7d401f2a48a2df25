package cli

import (
	"fmt"
	"strings"
	"time"

	"github.com/azconc/azconc/cmd/azconc/internal/cli/show"
)

// Progress shows how far a transfer is, on a terminal only and at most ten times a second.
type Progress struct {
	f     *Factory
	verb  string
	began time.Time
	shown time.Time
	width int

	hidden bool
}

func (f *Factory) Progress(verb string) *Progress {
	return &Progress{f: f, verb: verb, began: time.Now()}
}

// Show reports progress in bytes, and the total if it is known.
func (p *Progress) Show(done, total int64) {
	if p.hidden || !p.f.ErrTerminal || p.f.Quiet || time.Since(p.shown) < 100*time.Millisecond {
		return
	}
	p.shown = time.Now()
	line := "azconc: " + p.verb + " " + show.Bytes(done)
	if total > 0 {
		line += fmt.Sprintf(" of %s, %d%%", show.Bytes(total), done*100/total)
	}
	if s := time.Since(p.began).Seconds(); s > 0.5 {
		line += fmt.Sprintf(", %s/s", show.Bytes(int64(float64(done)/s)))
	}
	p.print(line)
}

// Count reports progress as a count.
func (p *Progress) Count(n int, what string) {
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

func (p *Progress) print(line string) {
	fmt.Fprintf(p.f.Err, "%-*s\r", p.width, line)
	p.width = max(p.width, len(line))
}

// End clears the line for what comes next.
func (p *Progress) End() {
	if p.width > 0 {
		fmt.Fprint(p.f.Err, strings.Repeat(" ", p.width)+"\r")
	}
}

// Say reports what is done at present.
func (p *Progress) Say(what string) {
	if !p.hidden && p.f.ErrTerminal && !p.f.Quiet {
		p.print("azconc: " + p.verb + " " + what)
	}
}
