package idempotent

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/azconc/azconc/idempotent/internal/send"
	"github.com/azconc/azconc/pkg/azerr"
	"github.com/azconc/azconc/pkg/clock"
	"github.com/azconc/azconc/pkg/retry"
	"github.com/azconc/azconc/pkg/wire"
)

// outage is an error of a resource that a consumer needs besides its queue: the table of the markers or of the inbox,
// or the container of the message bodies. It is not the message's fault.
type outage struct {
	err   error
	probe func(context.Context) error // asks, with one request, whether the outage is over
	mends bool                        // probe creates what is missing
}

func (e *outage) Error() string { return e.err.Error() }
func (e *outage) Unwrap() error { return e.err }

// suspension keeps a consumer from receiving while a resource that it needs does not answer: messages it received could not
// be handled, and would be received again at once.
type suspension struct {
	mu   sync.Mutex
	over chan struct{} // closed at its end; nil if there is none; guarded by mu
}

// lasts reports whether there is one.
func (s *suspension) lasts() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.over != nil
}

// wait waits for the end, at most until the given time, and reports whether there is none now.
func (s *suspension) wait(ctx context.Context, until clock.Instant) bool {
	s.mu.Lock()
	over := s.over
	s.mu.Unlock()
	if over == nil {
		return ctx.Err() == nil
	}
	ctx, cancel := until.Context(ctx, nil)
	defer cancel()
	select {
	case <-over:
		return ctx.Err() == nil
	case <-ctx.Done():
		return false
	}
}

// begin begins one, and reports whether there was none.
func (s *suspension) begin() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.over != nil {
		return false
	}
	s.over = make(chan struct{})
	return true
}

func (s *suspension) end() {
	s.mu.Lock()
	defer s.mu.Unlock()
	close(s.over)
	s.over = nil
}

// probing sets the interval between probes during an outage: about a dozen in five minutes.
var probing = retry.Backoff{Base: time.Second, Cap: 45 * time.Second}

// suspend is called after a failure of a resource that the consumer needs. A permanent failure, because the resource is
// missing or forbidden, ends the consumer; otherwise nothing is received until the resource answers.
//
// It reports whether the resource is waited for.
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
	if !c.outage.begin() {
		return true
	}
	c.tasks.Go(func() { c.probe(failed.probe, out.RetryAfter) })
	c.failed(fmt.Errorf("no message is received until this is over: %w", why))
	return true
}

// hopeless reports whether waiting is pointless.
func hopeless(out azerr.Outcome) bool {
	return !out.Transient() && !out.Ambiguous()
}

// probe ends the suspension when the outage is over and what it kept from being recorded is written, or the consumer stops.
func (c *Consumer) probe(ask func(context.Context) error, first time.Duration) {
	defer func() {
		c.outage.end()
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
