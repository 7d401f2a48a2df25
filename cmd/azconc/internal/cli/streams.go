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

// redactor redacts secrets in the output to stderr. It holds back an unfinished line, so that no secret is written in
// two parts; Flush writes it, for a prompt. It writes the beginning of a very long line as soon as no secret can extend
// into it. Memory is bounded, and the time is linear in the bytes written.
type redactor struct {
	mu      sync.Mutex
	W       io.Writer
	buf     []byte // of an unfinished line
	limit   int    // of buf; 0 is heldLine
	secrets []string
}

const (
	heldLine = 64 << 10
	heldMost = 1 << 20
	// secretMost is longer than any secret with its name.
	secretMost = 8 << 10
)

func (r *redactor) know(secrets ...string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, s := range secrets {
		if len(s) >= 8 {
			r.secrets = append(r.secrets, s)
		}
	}
}

func (r *redactor) Write(p []byte) (n int, err error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for n < len(p) {
		part := p[n:min(len(p), n+heldLine)]
		if err := r.add(part); err != nil {
			return n, err
		}
		n += len(part)
	}
	return n, nil
}

func (r *redactor) add(p []byte) error {
	end := bytes.LastIndexAny(p, "\r\n") + 1
	if end == 0 {
		r.buf = append(r.buf, p...)
		if len(r.buf) < max(r.limit, heldLine) {
			return nil
		}
		return r.pass()
	}
	line := r.redact(string(append(r.buf, p[:end]...)))
	r.buf, r.limit = append(r.buf[:0], p[end:]...), 0
	_, err := io.WriteString(r.W, line)
	return err
}

// pass writes the beginning of a long line, up to a position outside of any secret.
func (r *redactor) pass() error {
	text := string(r.buf)
	whole := r.redact(text)
	for cut := len(text) - secretMost; cut > len(text)/2; cut -= secretMost / 2 {
		if before := r.redact(text[:cut]); before+r.redact(text[cut:]) == whole {
			r.buf, r.limit = append(r.buf[:0], text[cut:]...), 0
			_, err := io.WriteString(r.W, before)
			return err
		}
	}
	if len(r.buf) < heldMost {
		r.limit = 2 * len(r.buf)
		return nil
	}
	r.buf, r.limit = r.buf[:0], 0
	_, err := io.WriteString(r.W, whole)
	return err
}

func (r *redactor) Flush() {
	r.mu.Lock()
	defer r.mu.Unlock()
	if len(r.buf) > 0 {
		_, _ = io.WriteString(r.W, r.redact(string(r.buf)))
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
