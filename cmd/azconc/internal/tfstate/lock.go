package tfstate

import (
	"cmp"
	"context"
	"errors"
	"net/http"

	"github.com/azconc/azconc/optimistic"
	"github.com/azconc/azconc/pessimistic"
	"github.com/azconc/azconc/pkg/azerr"
)

// lock answers a LOCK. It is 200 for the holder's own ID too: a client whose answer was lost asks again with the same ID, and
// would wait for itself otherwise.
func (s *Session) lock(body []byte) answer {
	info, err := parseInfo(body)
	if err != nil {
		return s.refuse(http.StatusBadRequest, "lock: %v", err)
	}
	if info.Path == "" {
		info.Path = s.opts.Name
	}
	if h := s.held; h != nil {
		mine := h.info.ID == info.ID
		switch {
		case mine && s.holds(h):
			return done
		case !mine && h.lease.Valid():
			s.locked(h.info, false)
			return answer{status: http.StatusLocked, body: h.info.json()}
		}
		s.drop(h)
	}
	for try := 0; ; try++ {
		l, err := pessimistic.TryAcquire(s.ctx, pessimistic.NewBlob(s.client), &pessimistic.AcquireOptions{Duration: s.opts.Duration, LeaseID: info.ID})
		switch {
		case err == nil:
			return s.took(info, l)
		case errors.Is(err, pessimistic.ErrNotFound) && azerr.Absent(err) == "" && try < 3:
			if a, ok := s.create(); !ok {
				return a
			}
		case errors.Is(err, pessimistic.ErrHeld):
			if a, held := s.holder(); held || try >= 3 {
				return a
			}
		default:
			return s.fail("lock", err)
		}
	}
}

// took describes the holder of a lease that was just acquired. If that is impossible, the lease is released: the azurerm backend
// cannot wait for a lock that describes nobody.
func (s *Session) took(info Info, l *pessimistic.Lease) answer {
	r, err := describe(s.ctx, s.client, info)
	if err != nil {
		_ = l.Release(s.ctx)
		return s.fail("lock", err)
	}
	to := r.ETag
	if to == "" { // the answer was lost; under the lease nobody else writes
		if l, err := Look(s.ctx, s.client); err == nil {
			to = l.ETag
		}
	}
	s.follow(r.BaseETag, to)
	s.kept = false
	s.hold(&held{info: info, lease: l})
	return done
}

// hold notes a lock, and waits for the end of its lease.
func (s *Session) hold(h *held) {
	s.held, h.watched = h, make(chan struct{})
	ctx, watched := h.lease.Context(), h.watched
	go func() {
		defer close(watched)
		<-ctx.Done()
		if lost := context.Cause(ctx); errors.Is(lost, pessimistic.ErrLost) {
			s.opts.Lost(lost)
		}
	}()
}

// drop forgets a lock that is lost.
func (s *Session) drop(h *held) {
	s.lost = cmp.Or(h.lease.Err(), context.Cause(h.lease.Context()))
	_ = h.lease.Release(s.ctx) // ends its goroutines; a lease that is lost needs no request
	<-h.watched
	s.held = nil
}

// holds reports whether a lock is held. A lease that has not been renewed in time is renewed now: the service does that unless
// another client has had the lease, or has changed the blob, since it ended.
func (s *Session) holds(h *held) bool {
	if h.lease.Context().Err() == nil {
		return true
	}
	l, err := h.lease.Reclaim(s.ctx)
	if err != nil {
		return false
	}
	<-h.watched
	s.hold(&held{info: h.info, lease: l})
	return true
}

// create creates an empty blob for a new state, as the azurerm backend does.
func (s *Session) create() (a answer, ok bool) {
	r, err := optimistic.Create(s.ctx, s.content, []byte{}, nil)
	switch {
	case err == nil:
		s.follow("", r.ETag)
	case errors.Is(err, optimistic.ErrExists), errors.Is(err, optimistic.ErrOutcomeUnknown): // the next acquisition shows it
	default:
		return s.fail("create the state", err), false
	}
	return answer{}, true
}

// holder answers a LOCK while another run holds the lock: 423 and the holder's description, in which the ID is never empty.
// held is false if the lock was free by then.
func (s *Session) holder() (a answer, held bool) {
	l, err := Look(s.ctx, s.client)
	switch {
	case err != nil:
		return s.fail("look at the lock", err), true
	case l.Problem != nil:
		l.Info = Info{ID: "unknown", Who: "unknown", Path: s.opts.Name, Info: l.Problem.Error() + "; azconc tf show " + s.opts.Name}
	}
	if l.Held {
		s.locked(l.Info, l.Infinite())
	}
	return answer{status: http.StatusLocked, body: l.Info.json()}, l.Held
}

// locked notes who holds the lock, once for each holder, however often the client asks. Terraform shows its own description in place of
// the holder's, so the note is all that the user learns.
func (s *Session) locked(by Info, infinite bool) {
	if s.noted == by.ID {
		return
	}
	s.noted = by.ID
	ends := "that lock ends with its run"
	if infinite {
		ends = "that lock does not end by itself: azconc tf unlock releases it if its run is over"
	}
	s.opts.Note("%s: locked by %s (%s, ID %s, created %s); %s", s.opts.Name, by.Who, cmp.Or(by.Operation, "operation unknown"), by.ID,
		cmp.Or(by.Created, "at an unknown time"), ends)
}

// unlockRequest answers an UNLOCK. It is 200 for the ID that was released last: a client whose answer was lost asks again. An
// empty one is Terraform's force-unlock, which means whatever lock there is: it is refused, because that may be another run's.
func (s *Session) unlockRequest(body []byte) answer {
	if len(body) == 0 {
		return s.refuse(http.StatusConflict, "an unlock without an ID is refused, because it would release whichever lock there is: use azconc tf unlock %s", s.opts.Name)
	}
	info, err := parseInfo(body)
	if err != nil {
		return s.refuse(http.StatusBadRequest, "unlock: %v", err)
	}
	if h := s.held; h != nil && h.info.ID == info.ID {
		return s.unlock(h)
	}
	if info.ID == s.released {
		return done
	}
	// Force-unlock of OpenTofu, which the user gives the ID of a lock that another run has left.
	switch err := Release(s.ctx, s.client, info.ID); {
	case errors.Is(err, pessimistic.ErrLost):
		return s.refuse(http.StatusConflict, "not locked with the ID %s: azconc tf show %s shows the lock", info.ID, s.opts.Name)
	case err != nil:
		return s.fail("unlock", err)
	}
	s.released = info.ID
	return done
}

// unlock releases a lock of this session.
func (s *Session) unlock(h *held) answer {
	if !s.holds(h) {
		s.drop(h)
		return s.refuse(http.StatusConflict, "the lock was lost before it was released: %v", s.lost)
	}
	h = s.held
	err := h.lease.Release(s.ctx)
	<-h.watched
	s.held = nil
	if errors.Is(err, pessimistic.ErrLost) {
		s.lost = err
		return s.refuse(http.StatusConflict, "the lock was lost before it was released: %v", s.lost)
	}
	s.released = h.info.ID
	if r, err := forget(s.ctx, s.client, h.info.ID); err == nil {
		s.follow(r.BaseETag, r.ETag)
	}
	if err != nil {
		// It is not renewed any more.
		s.opts.Note("%s: the lock could not be released, and ends by itself within %v: %s", s.opts.Name, s.opts.Duration, azerr.Summary(err))
	}
	return done
}
