package proc

import (
	"context"
	"fmt"
	"io"
	"strings"
	"sync"
	"time"
)

// Shell is a command line for a shell, with its environment and streams.
type Shell struct {
	Line   string
	Env    []string
	Stdin  io.Reader
	Stdout io.Writer
	Stderr io.Writer
	What   string // for messages: "the filter"

	Grace func(cause error) time.Duration // between TERM and KILL when ctx ends
}

// ShellEnd is how a Shell ended.
type ShellEnd struct {
	Status
	Said string // the end of its stderr
	what string
}

// Run runs the command line and ends every process that it leaves. When ctx ends, it ends the command. The error says that it could not
// be started.
func (c *Shell) Run(ctx context.Context) (ShellEnd, error) {
	said := &Tail{Limit: 4 << 10}
	command := &Command{
		Args: []string{"sh", "-c", c.Line}, Env: c.Env, Stdin: c.Stdin, Stdout: c.Stdout, Stderr: io.MultiWriter(c.Stderr, said),
	}
	stop, done := make(chan time.Duration, 1), make(chan struct{})
	var watch sync.WaitGroup
	watch.Go(func() {
		select {
		case <-ctx.Done():
			stop <- c.Grace(context.Cause(ctx))
		case <-done:
		}
	})
	s, err := command.Run(stop)
	close(done)
	watch.Wait()
	return ShellEnd{Status: s, Said: strings.TrimSpace(said.String()), what: c.What}, err
}

// Failure returns why the command failed, "" if it succeeded. If whole is set, incomplete output is a failure.
func (e *ShellEnd) Failure(whole bool) string {
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

// Tail keeps the last bytes written to it.
type Tail struct {
	Limit int
	Data  []byte
}

func (t *Tail) Write(p []byte) (int, error) {
	n := len(p)
	p = p[max(0, n-t.Limit):]
	if extra := len(t.Data) + len(p) - t.Limit; extra > 0 {
		t.Data = append(t.Data[:0], t.Data[extra:]...)
	}
	t.Data = append(t.Data, p...)
	return n, nil
}

func (t *Tail) String() string { return strings.ToValidUTF8(string(t.Data), "") }

// Head keeps the first bytes written to it.
type Head struct {
	Limit int
	Data  []byte
	N     int // of all there was
}

func (h *Head) Write(p []byte) (int, error) {
	h.N += len(p)
	h.Data = append(h.Data, p[:min(len(p), h.Limit-len(h.Data))]...)
	return len(p), nil
}

func (h *Head) Cut() bool { return h.N > len(h.Data) }
