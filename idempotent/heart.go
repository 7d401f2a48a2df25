package idempotent

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/azconc/azconc/pkg/retry"
)

// heart keeps a message hidden. It needs no goroutine before the first renewal is due.
type heart struct {
	timer *time.Timer

	mu      sync.Mutex // guards the fields below
	stopped bool
	quit    context.CancelFunc
	beating chan struct{} // closed when the renewals have ended
}

// keepHidden starts a heart, which ends the handler's context if the message cannot be kept hidden.
func (d *delivery) keepHidden(end context.CancelCauseFunc) *heart {
	h := &heart{}
	until, _ := d.receipt.Deadline()
	h.timer = time.AfterFunc(time.Until(until)-d.window/3, func() {
		h.mu.Lock()
		if h.stopped {
			h.mu.Unlock()
			return
		}
		ctx, quit := context.WithCancel(d.settling)
		defer quit()
		defer context.AfterFunc(d.c.holding, quit)()
		h.quit, h.beating = quit, make(chan struct{})
		h.mu.Unlock()
		defer close(h.beating)
		d.beat(ctx, end)
	})
	return h
}

// stop ends the renewals and waits for one that is in progress.
func (h *heart) stop() {
	h.mu.Lock()
	h.stopped = true
	quit, beating := h.quit, h.beating
	h.mu.Unlock()
	h.timer.Stop()
	if beating != nil {
		quit()
		<-beating
	}
}

// beat renews the message until ctx ends, and ends the handler's context if it cannot.
func (d *delivery) beat(ctx context.Context, end context.CancelCauseFunc) {
	for {
		until, ours := d.receipt.Deadline()
		if !ours {
			end(ErrOwnershipLost)
			return
		}
		if retry.Sleep(ctx, time.Until(until)-d.window/3) != nil {
			return
		}
		// A renewal in progress is not cut off when the handler returns: its response has the receipt to settle the
		// message with.
		renewing, cancel := context.WithDeadline(context.WithoutCancel(ctx), until.Add(-d.margin))
		err := d.receipt.Extend(renewing, d.window)
		cancel()
		switch {
		case err == nil && errors.Is(d.claim.hold(context.WithoutCancel(ctx)), ErrOwnershipLost):
			end(ErrOwnershipLost)
			return
		case err == nil:
			continue
		case ctx.Err() != nil:
			return
		}
		if until, ours = d.receipt.Deadline(); !ours || retry.Sleep(ctx, time.Until(until.Add(-d.margin))) == nil {
			end(ErrOwnershipLost)
		}
		return
	}
}
