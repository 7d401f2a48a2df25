// Package pool runs functions on goroutines that it reuses.
package pool

import "sync"

// Pool runs functions on goroutines that it reuses. A request needs a large stack, which a new goroutine would have to
// grow for each message.
type Pool struct {
	busy  sync.WaitGroup // functions that are running
	tasks chan func()    // unbuffered: only an idle goroutine receives
	over  chan struct{}  // closed when no more functions will come
}

func New() *Pool { return &Pool{tasks: make(chan func()), over: make(chan struct{})} }

// Run runs f on an idle goroutine, or on a new one.
func (p *Pool) Run(f func()) {
	p.busy.Add(1)
	select {
	case p.tasks <- f:
	default:
		go p.work(f)
	}
}

func (p *Pool) work(f func()) {
	for {
		p.call(f)
		select {
		case f = <-p.tasks:
		case <-p.over:
			return
		}
	}
}

// call runs f. If f calls runtime.Goexit, which ends the goroutine, f counts as having returned.
func (p *Pool) call(f func()) {
	defer p.busy.Done()
	f()
}

// Wait waits until all functions have returned.
func (p *Pool) Wait() { p.busy.Wait() }

// Dismiss ends the idle goroutines. No function may be running, and none may follow.
func (p *Pool) Dismiss() { close(p.over) }
