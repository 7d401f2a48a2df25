package monitor

import (
	"errors"
	"fmt"
	"os"
	"sync"
	"syscall"
	"time"
)

// patience is how long a span waits for a pipe whose reader does not read. It is short, because the renewal of a lease waits for the
// spans of its requests.
const patience = time.Second

// sink is the file of the spans. What cannot be written is dropped: telemetry must not delay the command, or decide how it ends. The
// deadline holds for what the system can wait for, such as a pipe; a file on a mounted share that hangs has none.
type sink struct {
	file     *os.File
	patience time.Duration

	mu     sync.Mutex
	failed error // of the first write that failed: nothing is written after it
}

// openSink opens a file for spans. It fails at once for a named pipe that nobody reads, which would otherwise keep the command from
// starting, whatever its --timeout.
func openSink(name string) (*sink, error) {
	how := os.O_APPEND | os.O_CREATE | os.O_WRONLY
	if info, err := os.Stat(name); err == nil && info.Mode()&os.ModeNamedPipe != 0 {
		how = os.O_WRONLY | syscall.O_NONBLOCK
	}
	file, err := os.OpenFile(name, how, 0o600)
	if errors.Is(err, syscall.ENXIO) {
		return nil, fmt.Errorf("--trace-file: %w: nobody reads this pipe; start its reader first", err)
	}
	if err != nil {
		return nil, fmt.Errorf("--trace-file: %w", err)
	}
	return &sink{file: file, patience: patience}, nil
}

// Write writes a span. It never fails: close reports the first failure.
func (s *sink) Write(span []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.failed == nil {
		_ = s.file.SetWriteDeadline(time.Now().Add(s.patience)) // a regular file has no deadlines, and needs none
		_, s.failed = s.file.Write(span)
	}
	return len(span), nil
}

// close closes the file, and says whether spans are missing in it.
func (s *sink) close() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	err := s.file.Close()
	switch {
	case errors.Is(s.failed, os.ErrDeadlineExceeded):
		return fmt.Errorf("--trace-file: spans are missing: the reader of %s has not read for %v", s.file.Name(), s.patience)
	case s.failed != nil:
		return fmt.Errorf("--trace-file: spans are missing: %w", s.failed)
	}
	return err
}
