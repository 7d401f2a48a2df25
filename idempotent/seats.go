package idempotent

import "sync"

// seats are the right to run a handler, or to run one alone. They are given in the order in which they were asked for, so one
// that asks for all of them gets them when those before it have returned theirs.
type seats struct {
	all int

	mu    sync.Mutex // guards what follows
	taken int
	queue []*seat
}

// seat is a wish for n seats.
type seat struct {
	n     int
	ready chan struct{} // closed when they are taken; nil if they were at once
}

// ask takes n seats, or queues for them.
func (s *seats) ask(n int) *seat {
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.queue) == 0 && s.taken+n <= s.all {
		s.taken += n
		return &seat{n: n}
	}
	w := &seat{n: n, ready: make(chan struct{})}
	s.queue = append(s.queue, w)
	return w
}

// leave returns the seats, or ends the wish for them.
func (s *seats) leave(w *seat) {
	s.mu.Lock()
	defer s.mu.Unlock()
	left := false
	for i, other := range s.queue {
		if other == w {
			s.queue = append(s.queue[:i], s.queue[i+1:]...)
			left = true
			break
		}
	}
	if !left {
		s.taken -= w.n
	}
	for len(s.queue) > 0 && s.taken+s.queue[0].n <= s.all {
		first := s.queue[0]
		s.queue = s.queue[1:]
		s.taken += first.n
		close(first.ready)
	}
}
