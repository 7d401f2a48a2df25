package live

import (
	"context"
	"sync"
	"time"

	tea "charm.land/bubbletea/v2"
)

// engine fetches rounds and carries out actions for a screen, one of each at a time. Its goroutines end with run.
type engine struct {
	next    func(context.Context) round
	send    func(tea.Msg)
	actions chan *Action // never full: the screen has one action at a time

	wake chan struct{} // delay has changed

	mu     sync.Mutex // guards what follows
	delay  time.Duration
	cancel context.CancelFunc // of the action that is carried out
	unseen *doneMsg           // the result of an action that has ended after the screen
}

// roundMsg is a round that has ended.
type roundMsg struct{ round }

// doneMsg is an action that has ended.
type doneMsg struct {
	action *Action
	text   string
	err    error
}

// noteMsg is a line about what is going on.
type noteMsg string

// hold is the delay of a round that waits until another delay is set.
const hold time.Duration = -1

func newEngine(next func(context.Context) round, interval time.Duration) *engine {
	return &engine{next: next, actions: make(chan *Action, 1), wake: make(chan struct{}, 1), delay: interval}
}

// run works until ctx ends.
func (e *engine) run(ctx context.Context) {
	var both sync.WaitGroup
	both.Go(func() { e.refresh(ctx) })
	both.Go(func() { e.act(ctx) })
	both.Wait()
}

func (e *engine) refresh(ctx context.Context) {
	for {
		got := e.next(ctx)
		if ctx.Err() != nil {
			return
		}
		e.send(roundMsg{got})
		if !e.wait(ctx) {
			return
		}
	}
}

// wait waits for the delay, whatever it becomes meanwhile. It reports whether another round is wanted.
func (e *engine) wait(ctx context.Context) bool {
	for {
		e.mu.Lock()
		delay := e.delay
		e.mu.Unlock()
		var due <-chan time.Time
		timer := (*time.Timer)(nil)
		if delay >= 0 {
			timer = time.NewTimer(delay)
			due = timer.C
		}
		select {
		case <-due:
			e.mu.Lock()
			if e.delay == 0 {
				e.delay = hold // until the screen has seen the round
			}
			e.mu.Unlock()
			return true
		case <-e.wake:
		case <-ctx.Done():
		}
		if timer != nil {
			timer.Stop()
		}
		if ctx.Err() != nil {
			return false
		}
	}
}

// after sets when the next round begins, from now.
func (e *engine) after(d time.Duration) {
	e.mu.Lock()
	e.delay = d
	e.mu.Unlock()
	select {
	case e.wake <- struct{}{}:
	default: // it wakes anyway
	}
}

func (e *engine) act(ctx context.Context) {
	for {
		select {
		case a := <-e.actions:
			e.carryOut(ctx, a)
		case <-ctx.Done():
			return
		}
	}
}

func (e *engine) carryOut(ctx context.Context, a *Action) {
	doing, cancel := context.WithCancel(ctx)
	defer cancel()
	e.mu.Lock()
	e.cancel = cancel
	e.mu.Unlock()
	text, err := a.Do(doing, func(line string) { e.send(noteMsg(line)) })
	done := doneMsg{a, text, err}
	e.send(done)
	if ctx.Err() != nil {
		e.mu.Lock()
		e.unseen = &done
		e.mu.Unlock()
	}
}

// do carries out an action. The screen waits for its doneMsg before the next one.
func (e *engine) do(a *Action) { e.actions <- a }

// stop ends the action that is carried out.
func (e *engine) stop() {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.cancel != nil {
		e.cancel()
	}
}
