package cli

import (
	"encoding/json"
	"fmt"
	"io"
	"os"
	"strconv"
	"sync"
	"time"

	"github.com/azconc/azconc/pessimistic"
)

// statusLines are JSON lines about a run, on a file descriptor that the caller has opened.
type statusLines struct {
	w      io.WriteCloser
	mu     sync.Mutex
	isLost bool
}

func openStatus(fd int) (*statusLines, error) {
	if fd == 0 {
		return &statusLines{}, nil
	}
	if !takeOver(fd) {
		return nil, withHint(usagef("--status-fd %d is not open", fd), fmt.Sprintf("the shell opens it with %d>file", fd))
	}
	return &statusLines{w: os.NewFile(uintptr(fd), "status-fd-"+strconv.Itoa(fd))}, nil
}

// lose writes, once, that what was held is lost.
func (s *statusLines) lose(l *pessimistic.LostError) {
	s.mu.Lock()
	told := s.isLost
	s.isLost = true
	s.mu.Unlock()
	if !told {
		s.write("lost", map[string]any{"reason": l.Reason.String()})
	}
}

// write writes one line. A reader that has gone is no reason to stop the command.
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
		defer s.mu.Unlock()
		_, _ = s.w.Write(append(text, '\n'))
	}
}

func (s *statusLines) close() {
	if s.w != nil {
		_ = s.w.Close()
	}
}
