package lock

import (
	"encoding/json"
	"fmt"
	"io"
	"os"
	"strconv"
	"sync"
	"time"

	"github.com/azconc/azconc/cmd/azconc/internal/cli/fail"
	"github.com/azconc/azconc/pessimistic"
)

// statusPatience bounds how long azconc waits at its end for a slow reader of the status lines.
const statusPatience = time.Second

// statusLines are JSON lines about a run, on a file descriptor that the caller has opened. A goroutine writes them, so that
// a slow reader delays nothing else. Without a descriptor nothing is written. Safe for concurrent use.
type statusLines struct {
	w      io.WriteCloser
	ready  func(time.Duration) bool // whether a write would not block, asked for at most that long
	gone   chan struct{}            // closed when azconc no longer waits for the reader
	empty  chan struct{}            // closed when the goroutine has ended
	queued chan struct{}            // has an element when there are new lines

	mu     sync.Mutex // guards what follows
	lines  [][]byte
	closed bool
	isLost bool
}

func openStatus(fd int) (*statusLines, error) {
	if fd == 0 {
		return &statusLines{}, nil
	}
	if !takeOver(fd) {
		return nil, fail.WithHint(fail.Usagef("--status-fd %d is not open", fd), fmt.Sprintf("the shell opens it with %d>file", fd))
	}
	return newStatusLines(os.NewFile(uintptr(fd), "status-fd-"+strconv.Itoa(fd)), func(d time.Duration) bool { return writable(fd, d) }), nil
}

func newStatusLines(w io.WriteCloser, ready func(time.Duration) bool) *statusLines {
	s := &statusLines{w: w, ready: ready, gone: make(chan struct{}), empty: make(chan struct{}), queued: make(chan struct{}, 1)}
	go s.run()
	return s
}

// run writes the queued lines until the end, or until it gives up on the reader.
func (s *statusLines) run() {
	defer close(s.empty)
	defer func() { _ = s.w.Close() }()
	for {
		s.mu.Lock()
		lines, closed := s.lines, s.closed
		s.lines = nil
		s.mu.Unlock()
		for _, line := range lines {
			for !s.ready(100 * time.Millisecond) {
				select {
				case <-s.gone:
					return
				default:
				}
			}
			// A reader that has gone is no reason to stop the command.
			_, _ = s.w.Write(line)
		}
		if closed && len(lines) == 0 {
			return
		}
		if len(lines) == 0 {
			<-s.queued
		}
	}
}

// lose writes, once, that the lease is lost.
func (s *statusLines) lose(l *pessimistic.LostError) {
	s.mu.Lock()
	before := s.isLost
	s.isLost = true
	s.mu.Unlock()
	if !before {
		s.write("lost", map[string]any{"reason": l.Reason.String()})
	}
}

// write queues one line.
func (s *statusLines) write(event string, facts map[string]any) {
	if s.w == nil {
		return
	}
	line := map[string]any{"event": event, "at": time.Now().UTC().Format(time.RFC3339Nano)}
	for name, value := range facts {
		line[name] = value
	}
	if text, err := json.Marshal(line); err == nil {
		s.mu.Lock()
		s.lines = append(s.lines, append(text, '\n'))
		s.mu.Unlock()
		s.wake()
	}
}

func (s *statusLines) wake() {
	select {
	case s.queued <- struct{}{}:
	default:
	}
}

// close waits until everything is written, for at most statusPatience.
func (s *statusLines) close() {
	if s.w == nil {
		return
	}
	s.mu.Lock()
	s.closed = true
	s.mu.Unlock()
	s.wake()
	select {
	case <-s.empty:
	case <-time.After(statusPatience):
		close(s.gone)
		<-s.empty
	}
}
