package cli

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"strings"
	"sync"
	"syscall"
	"time"

	"golang.org/x/term"

	"github.com/azconc/azconc/cmd/azconc/internal/cli/fail"
	"github.com/azconc/azconc/cmd/azconc/internal/cli/show"
	"github.com/azconc/azconc/cmd/azconc/internal/proc"
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

// redactor redacts secrets in the output to stderr. It holds back an unfinished line, so that no secret is written in two parts; Flush
// writes it, for a prompt. Of a very long line it holds back the end.
type redactor struct {
	mu      sync.Mutex
	W       io.Writer
	buf     []byte // of an unfinished line
	secrets []string
}

const (
	heldLine = 64 << 10
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
	text := ""
	if end > 0 {
		text = r.redact(string(append(r.buf, p[:end]...)))
		r.buf = r.buf[:0]
	}
	if r.buf = append(r.buf, p[end:]...); len(r.buf) > heldLine {
		long := r.redact(string(r.buf))
		cut := max(0, len(long)-secretMost)
		text += long[:cut]
		r.buf = append(r.buf[:0], long[cut:]...)
	}
	_, err := io.WriteString(r.W, text)
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

// Agreed reports whether the user agrees to what was said: by --yes, or to a question. Without a terminal the hint names the way out.
func (f *Factory) Agreed(ctx context.Context, yes bool, question, hint string) (bool, error) {
	switch {
	case yes:
		return true, nil
	case !f.InTerminal:
		return false, fail.WithHint(fail.Usagef("stdin is not a terminal, so nobody can be asked"), "--yes answers the question; "+hint)
	}
	return f.Confirmed(ctx, question)
}

// Confirmed asks a question on stderr, and reports whether the line that follows on stdin is yes. It ends with ctx, and reads no more
// than that line: what follows may be for an editor.
func (f *Factory) Confirmed(ctx context.Context, question string) (bool, error) {
	fmt.Fprint(f.Err, "azconc: "+question)
	f.Redactor.Flush()
	answer := make(chan string, 1)
	go func() {
		var line strings.Builder
		for one := make([]byte, 1); one[0] != '\n'; line.Write(one) {
			if _, err := f.In.Read(one); err != nil {
				break
			}
		}
		answer <- strings.TrimSpace(line.String())
	}()
	select {
	case <-ctx.Done():
		return false, context.Cause(ctx)
	case line := <-answer:
		return line == "yes", nil
	}
}

// Progress shows how far a transfer is, on a terminal only and at most ten times a second.
type Progress struct {
	f     *Factory
	verb  string
	began time.Time
	shown time.Time
	width int

	hidden bool
}

func (f *Factory) Progress(verb string) *Progress {
	return &Progress{f: f, verb: verb, began: time.Now()}
}

// Show reports progress in bytes, and the total if it is known.
func (p *Progress) Show(done, total int64) {
	of := ""
	if total > 0 {
		of = fmt.Sprintf(" of %s, %d%%", show.Bytes(total), done*100/total)
	}
	p.report(show.Bytes(done)+of, func(s float64) string { return show.Bytes(int64(float64(done) / s)) })
}

// Count reports progress as a count.
func (p *Progress) Count(n int, what string) {
	p.report(fmt.Sprintf("%d %s", n, what), func(s float64) string { return fmt.Sprintf("%.1f", float64(n)/s) })
}

func (p *Progress) report(done string, rate func(seconds float64) string) {
	if time.Since(p.shown) < 100*time.Millisecond {
		return
	}
	p.shown = time.Now()
	if s := time.Since(p.began).Seconds(); s > 0.5 {
		done += ", " + rate(s) + "/s"
	}
	p.Say(done)
}

// End clears the line for what comes next.
func (p *Progress) End() {
	if p.width > 0 {
		fmt.Fprint(p.f.Err, strings.Repeat(" ", p.width)+"\r")
	}
}

// Say reports what is done at present.
func (p *Progress) Say(what string) {
	if !p.hidden && p.f.ErrTerminal && !p.f.Quiet {
		line := "azconc: " + p.verb + " " + what
		fmt.Fprintf(p.f.Err, "%-*s\r", p.width, line)
		p.width = max(p.width, len(line))
	}
}

// WithSignals returns a context that SIGINT, SIGTERM or SIGHUP ends with a *SignalError. Only the first signal is
// caught, so that a second one ends a process that hangs while it cleans up.
func WithSignals(ctx context.Context) (context.Context, func()) {
	ctx, cancel := context.WithCancelCause(ctx)
	ch := make(chan os.Signal, 1)
	done := make(chan struct{})
	proc.Notify(ch, os.Interrupt, syscall.SIGTERM, syscall.SIGHUP)
	var wg sync.WaitGroup
	wg.Go(func() {
		select {
		case s := <-ch:
			signal.Stop(ch)
			cancel(&fail.SignalError{Signal: s})
		case <-done:
		}
	})
	return ctx, func() {
		signal.Stop(ch)
		close(done)
		wg.Wait()
		cancel(nil)
	}
}

// Interrupted reports whether SIGINT ended the run: ctx is that of WithSignals, and the exit code shows that the command that azconc ran,
// if any, was ended by the signal too.
func Interrupted(ctx context.Context, code int) bool {
	s, ok := errors.AsType[*fail.SignalError](context.Cause(ctx))
	return ok && s.Signal == os.Interrupt && code == fail.ExitInterrupted
}
