package queue

import (
	"bytes"
	"io"
	"os"
	"sync"
)

// spool keeps output until it is passed on: a little in memory, more in a file without a name. It is not safe for concurrent
// use, and must be closed.
type spool struct {
	memory bytes.Buffer
	file   *os.File
}

// spoolMemory is how much of it is in memory.
const spoolMemory = 1 << 20

func (s *spool) Write(p []byte) (int, error) {
	if s.file == nil && s.memory.Len()+len(p) <= spoolMemory {
		return s.memory.Write(p)
	}
	if s.file == nil {
		file, err := os.CreateTemp("", "azconc-output-")
		if err != nil {
			return 0, err
		}
		_ = os.Remove(file.Name()) // where a file that is open cannot be removed, close does it
		s.file = file
	}
	return s.file.Write(p)
}

// passTo writes the output to w.
func (s *spool) passTo(w io.Writer) error {
	if _, err := s.memory.WriteTo(w); err != nil || s.file == nil {
		return err
	}
	if _, err := s.file.Seek(0, io.SeekStart); err != nil {
		return err
	}
	_, err := io.Copy(w, s.file)
	return err
}

func (s *spool) close() {
	if s.file != nil {
		_ = s.file.Close()
		_ = os.Remove(s.file.Name())
	}
}

// handlerOutput receives the output of commands, and does not mix that of several: with one command at a time it passes through,
// otherwise it is kept until its command has ended.
type handlerOutput struct {
	to   io.Writer
	many bool
	mu   sync.Mutex // held while something is written
}

// run calls fn with the writer for a command's output. If the output cannot be passed on, the command has not failed: its effect
// has happened.
func (o *handlerOutput) run(fn func(io.Writer) error) error {
	if !o.many {
		return fn(lenient{o.to})
	}
	kept := &spool{}
	defer kept.close()
	err := fn(kept)
	o.mu.Lock()
	defer o.mu.Unlock()
	_ = kept.passTo(o.to)
	return err
}

// print writes a text that no command has printed.
func (o *handlerOutput) print(text []byte) {
	o.mu.Lock()
	defer o.mu.Unlock()
	_, _ = o.to.Write(text)
}

// lenient is a writer that ignores errors.
type lenient struct{ w io.Writer }

func (l lenient) Write(p []byte) (int, error) {
	_, _ = l.w.Write(p)
	return len(p), nil
}
