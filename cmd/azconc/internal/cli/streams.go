package cli

import (
	"bytes"
	"io"
	"os"
	"strings"
	"sync"

	"golang.org/x/term"

	"github.com/azconc/azconc/pkg/azerr"
)

// Streams are the three streams of a run, and whether each is a terminal.
type Streams struct {
	In       io.Reader
	Out, Err io.Writer

	InTerminal, OutTerminal, ErrTerminal bool
}

// SystemStreams returns the process's own streams.
func SystemStreams() *Streams {
	return &Streams{
		In: os.Stdin, Out: os.Stdout, Err: os.Stderr,
		InTerminal: isTerminal(os.Stdin), OutTerminal: isTerminal(os.Stdout), ErrTerminal: isTerminal(os.Stderr),
	}
}

// TestStreams returns streams that are buffers.
func TestStreams() (s *Streams, in, out, err *bytes.Buffer) {
	in, out, err = new(bytes.Buffer), new(bytes.Buffer), new(bytes.Buffer)
	return &Streams{In: in, Out: out, Err: err}, in, out, err
}

func isTerminal(f *os.File) bool { return term.IsTerminal(int(f.Fd())) }

// redactor is the last step before stderr. It holds back an unfinished line, so that no secret passes in two halves;
// Flush lets a prompt out.
type redactor struct {
	mu      sync.Mutex
	w       io.Writer
	buf     []byte
	secrets []string
}

func (r *redactor) know(secrets ...string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, s := range secrets {
		if len(s) >= 8 {
			r.secrets = append(r.secrets, s)
		}
	}
}

func (r *redactor) Write(p []byte) (int, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.buf = append(r.buf, p...)
	end := bytes.LastIndexAny(r.buf, "\r\n") + 1
	if end == 0 {
		return len(p), nil
	}
	line := r.redact(string(r.buf[:end]))
	r.buf = append(r.buf[:0], r.buf[end:]...)
	if _, err := io.WriteString(r.w, line); err != nil {
		return 0, err
	}
	return len(p), nil
}

func (r *redactor) Flush() {
	r.mu.Lock()
	defer r.mu.Unlock()
	if len(r.buf) > 0 {
		_, _ = io.WriteString(r.w, r.redact(string(r.buf)))
		r.buf = r.buf[:0]
	}
}

func (r *redactor) Redact(s string) string {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.redact(s)
}

func (r *redactor) redact(s string) string {
	for _, secret := range r.secrets {
		s = strings.ReplaceAll(s, secret, "REDACTED")
	}
	return azerr.Redact(s)
}
