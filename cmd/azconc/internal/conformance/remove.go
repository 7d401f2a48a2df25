package main

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/azconc/azconc/pkg/azerr"
)

// resource is a container, table, queue or share that may have been created.
type resource struct {
	kind, name string
	remove     func(ctx context.Context) error
	unlease    func(ctx context.Context) error // breaks a lease that prevents the removal; nil where there are none
}

// removalTime bounds the removal, which continues after an interrupt.
const removalTime = 3 * time.Minute

// remove removes everything that was created. It names what it could not remove, and returns how much that is.
func (r *rig) remove() (left int) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(r.ctx), removalTime)
	defer cancel()
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.ctx.Err() != nil {
		fmt.Fprintf(r.stderr, "conformance: interrupted: removing %d resources; interrupt again to leave them\n", len(r.created))
	}
	for _, x := range r.created {
		err := x.remove(ctx)
		if azerr.Classify(err).Kind == azerr.Held && x.unlease != nil && x.unlease(ctx) == nil {
			err = x.remove(ctx)
		}
		if !gone(err) {
			left++
			fmt.Fprintf(r.stderr, "conformance: error: could not remove %s %s: %s\n", x.kind, x.name, r.hide(azerr.Summary(err)))
			fmt.Fprintf(r.stderr, "conformance: hint: azconc %s delete %s\n", x.kind, x.name)
		}
	}
	return left
}

// gone reports whether a deletion that returned err leaves nothing behind.
func gone(err error) bool {
	return err == nil || azerr.Classify(err).Kind == azerr.NotFound || strings.HasSuffix(azerr.Classify(err).Code, "BeingDeleted")
}
