package sharded

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"sync"

	"github.com/azconc/azconc/optimistic"
)

// all reads all shards, and returns the number of reads.
func (c *spread[P, S]) all(ctx context.Context, op string) (parts []P, reads int, err error) {
	known := c.count()
	parts, reads, err = c.current(ctx, op)
	shard, missing := missingIn(err)
	if missing || errors.Is(err, optimistic.ErrNotFound) && !isDeleting(err) && known > 1 {
		// It may have been deleted and created with fewer shards since this process has last seen it.
		c.forget()
		var more int
		parts, more, err = c.current(ctx, op)
		reads += more
		shard, missing = missingIn(err)
	}
	if missing {
		err = c.without(ctx, op, shard, err)
	}
	return parts, reads, err
}

// current reads all shards, in parallel, the first one first where their number is not known. No change that was made before
// the call is missing.
func (c *spread[P, S]) current(ctx context.Context, op string) (parts []P, reads int, err error) {
	for want := max(c.count(), 1); len(parts) < want; {
		reads += want - len(parts)
		more, err := c.read(ctx, len(parts), want)
		if err != nil {
			return nil, reads, err
		}
		parts = append(parts, more...)
		// The number of shards was raised before any process could change a new one. A shard that it does not cover was empty
		// when the number was read, so that there is nothing to miss.
		if err := c.check(op, &parts[0]); err != nil {
			return nil, reads, err
		}
		want = max(want, S(&parts[0]).layout().Shards)
	}
	c.known(S(&parts[0]).layout().Shards)
	return parts, reads, nil
}

// missingError means that a shard other than the first was not found.
type missingError struct {
	shard int
	err   error
}

func (e *missingError) Error() string { return e.err.Error() }
func (e *missingError) Unwrap() error { return e.err }

func missingIn(err error) (shard int, missing bool) {
	e, missing := errors.AsType[*missingError](err)
	if !missing {
		return 0, false
	}
	return e.shard, true
}

// without returns the error of a call that has not found a shard, twice: that the whole is not there, or is being deleted, if
// the first shard says so. Otherwise the shard alone is missing.
func (c *spread[P, S]) without(ctx context.Context, op string, shard int, err error) error {
	p, none := c.first(ctx, op)
	switch {
	case none != nil:
		return none
	case shard >= S(p).layout().Shards:
		return err // created again, with fewer
	}
	return fmt.Errorf("%s: shard %d of %s is missing, with what was in it; delete the %s and create it again, or put an empty shard, {}, at its place: %w",
		op, shard, c.resource, c.what, err)
}

// parallel bounds how many shards are read or written at a time.
const parallel = 16

// read reads the shards from one to before another.
func (c *spread[P, S]) read(ctx context.Context, from, to int) ([]P, error) {
	parts, missing := make([]P, to-from), make([]error, to-from)
	err := each(ctx, to-from, func(ctx context.Context, i int) error {
		v, err := optimistic.Read(ctx, c.target(from+i), c.reading())
		if err != nil {
			if from+i > 0 {
				err = fmt.Errorf("shard %d of %s: %w", from+i, c.resource, err)
				if errors.Is(err, optimistic.ErrNotFound) {
					missing[i] = &missingError{from + i, err} // the others are read to the end, so that their number is known
					return nil
				}
			}
			return err
		}
		parts[i] = v.Value
		return nil
	})
	return parts, cmp.Or(append([]error{err}, missing...)...)
}

// each runs do for 0 to n-1, some at a time, and returns when all have ended. The first error ends those under way and is
// returned.
func each(ctx context.Context, n int, do func(ctx context.Context, i int) error) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	var wg sync.WaitGroup
	var first sync.Once
	var failed error
	turns := make(chan struct{}, parallel)
	for i := range n {
		turns <- struct{}{}
		if ctx.Err() != nil {
			first.Do(func() { failed = context.Cause(ctx) })
			break
		}
		wg.Go(func() {
			defer func() { <-turns }()
			if err := do(ctx, i); err != nil {
				first.Do(func() { failed = err })
				cancel(err)
			}
		})
	}
	wg.Wait()
	return failed
}
