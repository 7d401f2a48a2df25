package files

import (
	"context"
	"errors"

	"github.com/azconc/azconc/pkg/azerr"
)

// piece is a range of a file that is being read. A hole may be longer than a range.
type piece struct {
	at, end int64
	hull    hull   // what is requested
	buffer  []byte // of a range; nil for a hole
	seen    look
	err     error
	done    chan struct{} // closed when the fields above are final; nil for a hole
}

// ahead requests ranges before their turn, and hands them over in their order.
type ahead struct {
	*reader
	holes holes
	size  int64
	next  int64 // the first byte that was not requested
	queue []*piece
	many  int      // in flight
	spare [][]byte // buffers
	zero  []byte
}

// once reads the file from its beginning. begun reports that each has received something. Nothing is in flight afterwards.
func (r *reader) once(ctx context.Context, each func([]byte) error) (begun bool, err error) {
	buffer := make([]byte, r.call.span)
	first, seen, err := r.part(ctx, 0, r.call.span, buffer)
	r.leased = r.leased || seen.leased
	switch {
	case azerr.Has(err, "InvalidRange"):
		err = r.empty(ctx)
		return false, r.refused(ctx, err)
	case err != nil:
		return false, r.refused(ctx, err)
	}
	r.first = seen
	if len(first) == 0 {
		return false, nil
	}
	if err := each(first); err != nil {
		return true, err
	}
	a := &ahead{reader: r, size: seen.size, next: int64(len(first)), spare: [][]byte{buffer},
		holes: holes{client: r.client, call: r.call, lease: r.lease}}
	return true, a.rest(ctx, zeros(first), each)
}

// rest reads what follows the first range.
func (a *ahead) rest(ctx context.Context, empty bool, each func([]byte) error) error {
	ctx, cancel := context.WithCancel(ctx)
	defer func() {
		cancel()
		for _, p := range a.queue {
			if p.done != nil {
				<-p.done
			}
		}
	}()
	for a.next < a.size || len(a.queue) > 0 {
		a.fill(ctx, empty)
		p := a.queue[0]
		if err := a.landed(ctx, p); err != nil {
			return err
		}
		a.queue = a.queue[1:]
		var err error
		if empty, err = a.deliver(p, each); err != nil {
			return err
		}
	}
	return nil
}

// fill requests as many ranges as may be in flight. empty says that the last range that was handed over was nothing but zeros.
func (a *ahead) fill(ctx context.Context, empty bool) {
	if empty && a.next < a.size && a.holes.worth(a.next, a.size) {
		version := a.first.etag
		if a.lease != "" {
			version = "" // heartbeats change it, and nobody else writes
		}
		a.holes.list(ctx, a.next, a.size, version)
	}
	for a.next < a.size && a.many < a.call.many {
		if n := len(a.queue); n > 0 && a.queue[n-1].done == nil && a.holes.worth(a.next, a.size) {
			return // the hole may go on behind what was listed
		}
		end := min(a.next+a.call.span, a.size)
		p := &piece{at: a.next, end: end, hull: a.holes.written(a.next, end)}
		a.next = end
		if p.hull.end == 0 {
			if last := len(a.queue) - 1; last >= 0 && a.queue[last].done == nil {
				a.queue[last].end = end
			} else {
				a.queue = append(a.queue, p)
			}
			continue
		}
		if last := len(a.spare) - 1; last >= 0 {
			p.buffer, a.spare = a.spare[last], a.spare[:last]
		} else {
			p.buffer = make([]byte, a.call.span)
		}
		p.done = make(chan struct{})
		a.many++
		a.queue = append(a.queue, p)
		go func() {
			defer close(p.done)
			_, p.seen, p.err = a.part(ctx, p.hull.begin, p.hull.end, p.buffer[p.hull.begin-p.at:])
		}()
	}
}

// landed waits for a range, and checks that it is of the same version as the first one.
func (a *ahead) landed(ctx context.Context, p *piece) error {
	if p.done == nil {
		return nil
	}
	<-p.done
	a.many--
	a.leased = a.leased || p.seen.leased
	switch {
	case azerr.Has(p.err, "InvalidRange"): // it is now shorter
		return errChanged
	case p.err != nil:
		return a.refused(ctx, p.err)
	case !a.same(p.seen):
		return errChanged
	}
	return nil
}

// deliver hands a piece over, and reports whether it was nothing but zeros.
func (a *ahead) deliver(p *piece, each func([]byte) error) (empty bool, err error) {
	if p.done == nil {
		if a.zero == nil {
			a.zero = make([]byte, min(a.call.span, a.size))
		}
		for at := p.at; at < p.end && err == nil; at += int64(len(a.zero)) {
			err = each(a.zero[:min(int64(len(a.zero)), p.end-at)])
		}
		return true, err
	}
	part := p.buffer[:p.end-p.at]
	clear(part[:p.hull.begin-p.at])
	clear(part[p.hull.end-p.at:])
	err = each(part)
	empty = zeros(part)
	a.spare = append(a.spare, p.buffer)
	return empty, err
}

// refused is the error of a request, unless the file has changed.
func (r *reader) refused(ctx context.Context, err error) error {
	if errors.Is(err, errChanged) {
		return err
	}
	return r.call.refusal(ctx, "read", false, err)
}
