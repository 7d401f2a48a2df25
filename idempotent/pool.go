package idempotent

import "sync"

// pool runs functions on goroutines that it reuses. A request needs a large stack, which a new goroutine would have to
// grow for each message.
type pool struct {
	busy  sync.WaitGroup // functions that are running
	tasks chan func()    // unbuffered: only an idle goroutine receives
	over  chan struct{}  // closed when no more functions will come
}

func newPool() *pool { return &pool{tasks: make(chan func()), over: make(chan struct{})} }

// run runs f on an idle goroutine, or on a new one.
func (p *pool) run(f func()) {
	p.busy.Add(1)
	select {
	case p.tasks <- f:
	default:
		go p.work(f)
	}
}

func (p *pool) work(f func()) {
	for {
		f()
		p.busy.Done()
		select {
		case f = <-p.tasks:
		case <-p.over:
			return
		}
	}
}

// wait waits until all functions have returned.
func (p *pool) wait() { p.busy.Wait() }

// dismiss ends the idle goroutines. No function may be running, and none may follop.
func (p *pool) dismiss() { close(p.over) }
