package files

import (
	"context"
	"errors"

	"github.com/azconc/azconc/pkg/azerr"
)

// piece is a range of a file that is being read, or was.
type piece struct {
	at   int64
	part []byte
	seen look
	err  error
}

// once reads the file from its beginning, the ranges after the first one a few at a time. begun reports that each has
// received something. Nothing is in flight afterwards.
func (r *reader) once(ctx context.Context, each func([]byte) error) (begun bool, err error) {
	first := r.settled(ctx, <-r.request(ctx, 0))
	if azerr.Has(first.err, "InvalidRange") {
		return false, r.refused(ctx, r.empty(ctx))
	}
	if first.err != nil {
		return false, r.refused(ctx, first.err)
	}
	if r.first = first.seen; len(first.part) == 0 {
		return false, nil
	}
	if err := each(first.part); err != nil {
		return true, err
	}
	ctx, cancel := context.WithCancel(ctx)
	var queue []<-chan piece
	defer func() {
		cancel()
		for _, flying := range queue {
			<-flying
		}
	}()
	for next := r.call.span; next < r.first.size || len(queue) > 0; {
		for ; next < r.first.size && len(queue) < r.call.many; next += r.call.span {
			queue = append(queue, r.request(ctx, next))
		}
		p := <-queue[0]
		queue = queue[1:]
		switch p = r.settled(ctx, p); {
		case azerr.Has(p.err, "InvalidRange"): // it is now shorter
			return true, errChanged
		case p.err != nil:
			return true, r.refused(ctx, p.err)
		case !r.same(p.seen):
			return true, errChanged
		}
		if err := each(p.part); err != nil {
			return true, err
		}
	}
	return true, nil
}

func (r *reader) request(ctx context.Context, at int64) <-chan piece {
	landed := make(chan piece, 1)
	go func() {
		p := piece{at: at}
		_, p.err = r.call.repeat(ctx, "Get File", func(ctx context.Context) error { return r.part(ctx, &p) })
		landed <- p
	}()
	return landed
}

// settled returns the range once SMB clients let it be read, if the call waits for them.
func (r *reader) settled(ctx context.Context, p piece) piece {
	_, p.err = r.call.settle(ctx, "Get File", p.err, func(ctx context.Context) error { return r.part(ctx, &p) })
	r.leased = r.leased || p.seen.leased
	return p
}

// refused is the error of a request, unless the file has changed.
func (r *reader) refused(ctx context.Context, err error) error {
	if errors.Is(err, errChanged) {
		return err
	}
	return r.call.refusal(ctx, "read", false, err)
}
