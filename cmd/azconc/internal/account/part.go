package main

import (
	"context"
	"fmt"
	"io"
	"regexp"
	"runtime"
	"runtime/debug"
	"strings"
	"sync"

	"github.com/azconc/azconc/pkg/aztest/conformance"
)

// section is a part of the run: one of the suite, or a scenario of the libraries.
type section struct {
	conformance.Section
	promise string   // what of the libraries the scenario is of
	needs   []string // further services
	lib     func(t conformance.T, r *rig)
}

// sections are all parts of the run: first the service, then the libraries.
func sections() []section {
	var all []section
	for _, s := range conformance.Sections() {
		all = append(all, section{Section: s})
	}
	return append(all, scenarios()...)
}

// ask runs the selected sections that the account supports.
func ask(r *rig, out *report, wanted *regexp.Regexp, stderr io.Writer) {
	for _, s := range sections() {
		if !wanted.MatchString(s.Name) || r.ctx.Err() != nil {
			continue
		}
		missing := ""
		for _, service := range append(s.needs, s.Service) {
			if !r.has(service) {
				missing = service
			}
		}
		if missing != "" {
			out.skip(s.Name, "the account has no endpoint of the "+missing+" service")
			continue
		}
		fmt.Fprintf(stderr, "conformance: %s …\n", s.Name)
		top := &part{rig: r, out: out, section: s, names: []string{s.Name}}
		top.run(func(t conformance.T) {
			if s.lib != nil {
				s.lib(t, r)
				return
			}
			s.Section.Run(t, r.harness())
		})
	}
}

// part is a T whose results become rows of the report. A part without results and errors is a row as well.
type part struct {
	rig     *rig
	out     *report
	section section
	names   []string

	mu       sync.Mutex
	answers  int // guarded by mu, as errors are
	problems int
}

func (p *part) run(f func(t conformance.T)) {
	done := make(chan struct{})
	go func() {
		defer close(done)
		defer func() {
			if v := recover(); v != nil {
				p.problem(fmt.Sprintf("panic: %v %s", v, debug.Stack()))
			}
		}()
		f(p)
	}()
	<-done
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.answers == 0 && p.problems == 0 && p.rig.ctx.Err() == nil {
		p.out.add(row{rule: p.rule(""), expected: holds, answered: holds, source: p.source()})
	}
}

// holds is the expectation of a rule that covers more than one response.
const holds = "it holds"

func (p *part) rule(question string) string {
	names := p.names
	if question != "" {
		names = append(names[:len(names):len(names)], question)
	}
	return strings.Join(names, ": ")
}

func (p *part) source() string {
	if p.section.lib != nil {
		return p.section.promise
	}
	return "REST: " + p.section.SourceOf(p.names[min(1, len(p.names)-1)])
}

// stopped ends the part if the run was interrupted, because its results mean nothing then.
func (p *part) stopped() {
	if p.rig.ctx.Err() != nil {
		runtime.Goexit()
	}
}

func (p *part) Answered(a conformance.Answer) {
	p.stopped()
	p.mu.Lock()
	defer p.mu.Unlock()
	p.answers++
	p.out.add(row{p.rule(a.Question), a.Expected, a.Answered, p.source(), a.Known})
}

func (p *part) problem(text string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.problems++
	p.out.add(row{rule: p.rule(""), expected: holds, answered: text, source: p.source()})
}

func (p *part) Helper()                  {}
func (p *part) Context() context.Context { return p.rig.ctx }

func (p *part) Error(args ...any) {
	p.stopped()
	p.problem(strings.TrimSpace(fmt.Sprintln(args...)))
}

func (p *part) Errorf(format string, args ...any) {
	p.stopped()
	p.problem(fmt.Sprintf(format, args...))
}

func (p *part) Fatal(args ...any) {
	p.Error(args...)
	runtime.Goexit()
}

func (p *part) Fatalf(format string, args ...any) {
	p.Errorf(format, args...)
	runtime.Goexit()
}

func (p *part) Run(name string, f func(t conformance.T)) {
	p.stopped()
	p.mu.Lock()
	p.answers++ // the inner part has rows of its own
	p.mu.Unlock()
	inner := &part{rig: p.rig, out: p.out, section: p.section, names: append(p.names[:len(p.names):len(p.names)], name)}
	inner.run(f)
	p.stopped()
}
