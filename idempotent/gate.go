package idempotent

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/azconc/azconc/idempotent/internal/send"
	"github.com/azconc/azconc/pkg/azerr"
	"github.com/azconc/azconc/pkg/retry"
	"github.com/azconc/azconc/pkg/wire"
)

// outage is an error of a resource that a consumer needs besides its queue: the table of the markers or of the inbox,
// or the container of the sessions or of the message bodies. It is not the message's fault.
type outage struct {
	err   error
	probe func(context.Context) error // asks, with one request, whether the outage is over
	mends bool                        // probe creates what is missing
}

func (e *outage) Error() string { return e.err.Error() }
func (e *outage) Unwrap() error { return e.err }

// gate keeps a consumer from receiving while a resource that it needs does not answer: messages it received could not
// be handled, and would be received again at once.
type gate struct {
	closed atomic.Bool

	mu     sync.Mutex    // guards opened, and changes of closed
	opened chan struct{} // closed when the gate opens; nil while it is open
}

// wait waits until the gate is open, at most until the given time unless that is zero, and reports whether it is open.
func (g *gate) wait(ctx context.Context, until time.Time) bool {
	g.mu.Lock()
	opened := g.opened
	g.mu.Unlock()
	if opened == nil {
		return ctx.Err() == nil
	}
	var over <-chan time.Time
	if !until.IsZero() {
		timer := time.NewTimer(time.Until(until))
		defer timer.Stop()
		over = timer.C
	}
	select {
	case <-opened:
		return ctx.Err() == nil
	case <-over:
		return false
	case <-ctx.Done():
		return false
	}
}

// close closes the gate, and reports whether it was open.
func (g *gate) close() bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.opened != nil {
		return false
	}
	g.opened = make(chan struct{})
	g.closed.Store(true)
	return true
}

func (g *gate) open() {
	g.mu.Lock()
	defer g.mu.Unlock()
	close(g.opened)
	g.opened = nil
	g.closed.Store(false)
}

// probing sets the interval between probes during an outage: about a dozen in five minutes.
var probing = retry.Backoff{Base: time.Second, Cap: 45 * time.Second}

// suspend is called after a failure of a resource that the consumer needs. A permanent failure, because the resource is
// missing or forbidden, ends the consumer; otherwise nothing is received until the resource answers.
//
// It reports whether the gate is closed.
func (c *Consumer) suspend(why error) bool {
	failed, ok := errors.AsType[*outage](why)
	if !ok {
		failed = &outage{err: why}
	}
	out := azerr.Classify(failed)
	if out.Kind == azerr.BadInput { // the fault of one message
		c.failed(why)
		return false
	}
	if failed.probe == nil || hopeless(out) && !failed.mends {
		c.failed(why)
		c.end(why)
		return false
	}
	if !c.gate.close() {
		return true
	}
	c.failed(fmt.Errorf("no message is received until this is over: %w", why))
	c.probes.Go(func() { c.probe(failed.probe, out.RetryAfter) })
	return true
}

// hopeless reports whether waiting is pointless.
func hopeless(out azerr.Outcome) bool {
	return !out.Transient() && !out.Ambiguous()
}

// probe opens the gate when the outage is over and what it kept from being recorded is written, or the consumer stops.
func (c *Consumer) probe(ask func(context.Context) error, first time.Duration) {
	defer func() {
		c.gate.open()
		c.poke()
		if err := c.dedupe.flush(c.stopping); err != nil && c.stopping.Err() == nil { // of a handler that ended meanwhile
			c.suspend(err)
		}
	}()
	for n := 0; ; n++ {
		if retry.Sleep(c.stopping, max(first, probing.Base/2+probing.In(c.stopping).Wait(n))) != nil {
			return
		}
		err := wire.Wire{}.Once(c.stopping, "", send.TryTimeout, ask)
		if err == nil {
			err = c.dedupe.flush(c.stopping)
		}
		out := azerr.Classify(err)
		switch {
		case err == nil:
			return
		case c.stopping.Err() != nil:
			return
		case hopeless(out):
			c.failed(err)
			c.end(err)
			return
		}
		first = out.RetryAfter
	}
}

// end makes Run stop and return err.
func (c *Consumer) end(err error) {
	c.mu.Lock()
	if c.fatal == nil {
		c.fatal = azerr.Clean(err)
	}
	c.mu.Unlock()
	c.stop(err)
}
