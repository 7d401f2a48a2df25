package lock

import (
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"strconv"
	"sync/atomic"
	"time"

	"github.com/azconc/azconc/cmd/azconc/internal/cli/fail"
	"github.com/azconc/azconc/pessimistic"
)

const (
	// statusPatience bounds how long azconc waits at its end for a slow reader of the status lines.
	statusPatience = time.Second
	// statusQueued is how many lines wait for a reader. What comes after that is lost.
	statusQueued = 64
)

// statusLines are JSON lines about a run, on a file descriptor that the caller has opened. A goroutine writes them, so that
// a slow reader delays nothing else. Without a descriptor nothing is written. Safe for concurrent use.
type statusLines struct {
	lines   chan []byte
	written chan struct{} // closed when the goroutine has ended
	isLost  atomic.Bool
}

func openStatus(fd int) (*statusLines, error) {
	if fd == 0 {
		return &statusLines{}, nil
	}
	if !takeOver(fd) {
		return nil, fail.WithHint(fail.Usagef("--status-fd %d is not open", fd), fmt.Sprintf("the shell opens it with %d>file", fd))
	}
	s := &statusLines{lines: make(chan []byte, statusQueued), written: make(chan struct{})}
	go func() {
		defer close(s.written)
		w := os.NewFile(uintptr(fd), "status-fd-"+strconv.Itoa(fd))
		for line := range s.lines {
			_, _ = w.Write(line) // a reader that has gone is no reason to stop the command
		}
		_ = w.Close()
	}()
	return s, nil
}

// lose writes, once, that the lease is lost.
func (s *statusLines) lose(l *pessimistic.LostError) {
	if !s.isLost.Swap(true) {
		s.write("lost", map[string]any{"reason": l.Reason.String()})
	}
}

// write queues one line.
func (s *statusLines) write(event string, facts map[string]any) {
	if s.lines == nil {
		return
	}
	line := map[string]any{"event": event, "at": time.Now().UTC().Format(time.RFC3339Nano)}
	maps.Copy(line, facts)
	text, err := json.Marshal(line)
	if err != nil {
		return
	}
	select {
	case s.lines <- append(text, '\n'):
	default:
	}
}

// close waits until everything is written, for at most statusPatience. A write to a reader that does not read ends with the process.
func (s *statusLines) close() {
	if s.lines == nil {
		return
	}
	close(s.lines)
	select {
	case <-s.written:
	case <-time.After(statusPatience):
	}
}
