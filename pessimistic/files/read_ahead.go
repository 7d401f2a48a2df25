package files

import (
	"context"
	"errors"

	"github.com/azconc/azconc/pkg/azerr"
)

// piece is a range of a file that is being read.
type piece struct {
	part []byte
	seen look
	err  error
	done chan struct{} // closed when the fields above are final
}

// once reads the file from its beginning, the ranges after the first one a few at a time. begun reports that each has
// received something. Nothing is in flight afterwards.
func (r *reader) once(ctx context.Context, each func([]byte) error) (begun bool, err error) {
	buffer := make([]byte, r.call.span)
	first, seen, err := r.part(ctx, 0, buffer)
	r.leased = r.leased || seen.leased
	if azerr.Has(err, "InvalidRange") {
		return false, r.refused(ctx, r.empty(ctx))
	}
	if err != nil {
		return false, r.refused(ctx, err)
	}
	r.first = seen
	if len(first) == 0 {
		return false, nil
	}
	if err := each(first); err != nil {
		return true, err
	}
	ctx, cancel := context.WithCancel(ctx)
	var queue []*piece
	defer func() {
		cancel()
		for _, p := range queue {
			<-p.done
		}
	}()
	for next := int64(len(first)); next < seen.size || len(queue) > 0; {
		for ; next < seen.size && len(queue) < r.call.many; next += r.call.span {
			if buffer == nil {
				buffer = make([]byte, r.call.span)
			}
			queue = append(queue, r.request(ctx, next, buffer))
			buffer = nil
		}
		p := queue[0]
		<-p.done
		queue = queue[1:]
		if err := r.landed(ctx, p); err != nil {
			return true, err
		}
		if err := each(p.part); err != nil {
			return true, err
		}
		buffer = p.part[:r.call.span]
	}
	return true, nil
}

// request begins to read a range.
func (r *reader) request(ctx context.Context, at int64, buffer []byte) *piece {
	p := &piece{done: make(chan struct{})}
	go func() {
		defer close(p.done)
		p.part, p.seen, p.err = r.part(ctx, at, buffer)
	}()
	return p
}

// landed checks that a range is of the same version as the first one.
func (r *reader) landed(ctx context.Context, p *piece) error {
	r.leased = r.leased || p.seen.leased
	switch {
	case azerr.Has(p.err, "InvalidRange"): // it is now shorter
		return errChanged
	case p.err != nil:
		return r.refused(ctx, p.err)
	case !r.same(p.seen):
		return errChanged
	}
	return nil
}

// refused is the error of a request, unless the file has changed.
func (r *reader) refused(ctx context.Context, err error) error {
	if errors.Is(err, errChanged) {
		return err
	}
	return r.call.refusal(ctx, "read", false, err)
}
