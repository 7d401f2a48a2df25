package idempotent

import "sync"

// seats grant the right to run a handler, or to run one alone. They are granted in the order of the requests, so a
// request for all of them is granted when those before it have returned theirs.
type seats struct {
	all int

	mu    sync.Mutex // guards the fields below
	taken int
	queue []*seat
}

// seat is a request for n seats.
type seat struct {
	n     int
	ready chan struct{} // closed when they are granted; nil if they were granted at once
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

// leave returns the seats, or withdraws the request.
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
