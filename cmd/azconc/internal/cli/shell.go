package cli

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"strings"
	"sync"
	"time"

	"github.com/azconc/azconc/cmd/azconc/internal/proc"
)

// shellCommand is a command line for a shell, with what it reads and where it complains.
type shellCommand struct {
	line   string
	env    []string
	stdin  []byte
	stdout io.Writer // nil keeps it: shellEnd.out
	stderr io.Writer
	what   string // for messages: "the filter"

	grace func(cause error) time.Duration // between TERM and KILL when ctx ends
}

// shellEnd is how it ended, and what it has said.
type shellEnd struct {
	proc.Status
	out  []byte
	said string // the end of its stderr
	what string
}

// run runs it with everything that it starts, of which nothing is left afterwards. When ctx ends it is ended. The error is
// that it could not be run at all.
func (c *shellCommand) run(ctx context.Context) (shellEnd, error) {
	var out bytes.Buffer
	stdout := c.stdout
	if stdout == nil {
		stdout = &out
	}
	said := &tail{limit: 4 << 10}
	command := &proc.Command{
		Args: []string{"sh", "-c", c.line}, Env: c.env, Stdin: bytes.NewReader(c.stdin), Stdout: stdout, Stderr: io.MultiWriter(c.stderr, said),
	}
	stop, done := make(chan time.Duration, 1), make(chan struct{})
	var watch sync.WaitGroup
	watch.Go(func() {
		select {
		case <-ctx.Done():
			stop <- c.grace(context.Cause(ctx))
		case <-done:
		}
	})
	s, err := command.Run(stop)
	close(done)
	watch.Wait()
	return shellEnd{Status: s, out: out.Bytes(), said: strings.TrimSpace(said.String()), what: c.what}, err
}

// failure says why it did not succeed, "" if it did. whole demands that all of its output is there.
func (e *shellEnd) failure(whole bool) string {
	switch {
	case e.Signal != "":
		return e.what + " was ended by a signal: " + e.Signal
	case e.Code != 0:
		return fmt.Sprintf("%s exited with status %d", e.what, e.Code)
	case whole && e.Cut:
		return e.what + " left a process running that keeps its output open"
	}
	return ""
}

// tail keeps the last bytes written to it.
type tail struct {
	limit int
	data  []byte
}

func (t *tail) Write(p []byte) (int, error) {
	n := len(p)
	p = p[max(0, n-t.limit):]
	if extra := len(t.data) + len(p) - t.limit; extra > 0 {
		t.data = append(t.data[:0], t.data[extra:]...)
	}
	t.data = append(t.data, p...)
	return n, nil
}

func (t *tail) String() string { return strings.ToValidUTF8(string(t.data), "") }

// head keeps the first bytes written to it.
type head struct {
	limit int
	data  []byte
	n     int // of all there was
}

func (h *head) Write(p []byte) (int, error) {
	h.n += len(p)
	h.data = append(h.data, p[:min(len(p), h.limit-len(h.data))]...)
	return len(p), nil
}

func (h *head) cut() bool { return h.n > len(h.data) }
