package main

import (
	"context"
	"fmt"
	"regexp"
	"runtime"
	"runtime/debug"
	"strings"
	"sync"

	"github.com/azconc/azconc/pkg/aztest/conformance"
)

// ask runs the selected sections that the account supports.
func (r *rig) ask(out *report, wanted *regexp.Regexp) {
	for _, s := range conformance.Sections() {
		switch {
		case !wanted.MatchString(s.Name) || r.ctx.Err() != nil:
		case !r.has(s.Service):
			out.skip(s.Name, "the account has no endpoint of the "+s.Service+" service")
		default:
			fmt.Fprintf(r.stderr, "conformance: %s …\n", s.Name)
			p := &part{rig: r, out: out, section: s, names: []string{s.Name}}
			p.run(func(t conformance.T) { s.Run(t, r.harness()) })
		}
	}
}

// part is a T whose results become rows of the report. A part without results and errors is a row as well.
type part struct {
	rig     *rig
	out     *report
	section conformance.Section
	names   []string

	mu    sync.Mutex
	shown bool // guarded by mu: the part or an inner one has a row
}

func (p *part) run(f func(t conformance.T)) {
	done := make(chan struct{})
	go func() {
		defer close(done)
		defer func() {
			if v := recover(); v != nil {
				p.show("", holds, fmt.Sprintf("panic: %v %s", v, debug.Stack()), "")
			}
		}()
		f(p)
	}()
	<-done
	if !p.shown && p.rig.ctx.Err() == nil {
		p.show("", holds, holds, "")
	}
}

// holds is the expectation of a rule that covers more than one response.
const holds = "it holds"

// show adds a row.
func (p *part) show(question, expected, answered, known string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.shown = true
	rule := strings.TrimSuffix(strings.Join(append(p.names[:len(p.names):len(p.names)], question), ": "), ": ")
	p.out.add(row{rule, expected, answered, "REST: " + p.section.SourceOf(p.names[min(1, len(p.names)-1)]), known})
}

// stopped ends the part if the run was interrupted, because its results mean nothing then.
func (p *part) stopped() {
	if p.rig.ctx.Err() != nil {
		runtime.Goexit()
	}
}

func (p *part) Answered(a conformance.Answer) {
	p.stopped()
	p.show(a.Question, a.Expected, a.Answered, a.Known)
}

func (p *part) Helper()                  {}
func (p *part) Context() context.Context { return p.rig.ctx }

func (p *part) Errorf(format string, args ...any) {
	p.stopped()
	p.show("", holds, fmt.Sprintf(format, args...), "")
}

func (p *part) Fatal(args ...any) { p.Fatalf("%s", fmt.Sprint(args...)) }

func (p *part) Fatalf(format string, args ...any) {
	p.Errorf(format, args...)
	runtime.Goexit()
}

func (p *part) Run(name string, f func(t conformance.T)) {
	p.stopped()
	p.mu.Lock()
	p.shown = true
	p.mu.Unlock()
	inner := &part{rig: p.rig, out: p.out, section: p.section, names: append(p.names[:len(p.names):len(p.names)], name)}
	inner.run(f)
	p.stopped()
}
