package soak

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"os/exec"
	"sync"
	"time"
)

// crew is one worker of the soak: its present process, the number of processes that it has had, and its line to the service.
type crew struct {
	index      int
	soak       *soak
	line       *line
	turn       sync.Mutex // held while something happens to the worker: it never has two processes
	generation int
	process    *member
}

// member is one process.
type member struct {
	name   string
	cmd    *exec.Cmd
	stdin  io.WriteCloser
	stderr bytes.Buffer // to be read when done is closed
	done   chan struct{}
	err    error // set before done is closed
}

// start starts the next process of the worker: this program again.
func (c *crew) start() error {
	c.generation++
	m := &member{name: fmt.Sprintf("w%d.%d", c.index, c.generation), done: make(chan struct{})}
	text, err := json.Marshal(config{Worker: c.index, Process: m.name, Seed: c.soak.Seed, Account: c.line.account, Dir: c.soak.dir, Plant: c.soak.Plant})
	must(err)
	m.cmd = exec.Command("/proc/self/exe")
	m.cmd.Env = append(os.Environ(), workerVariable+"="+string(text))
	m.cmd.Stderr, m.cmd.SysProcAttr = &m.stderr, ownGroup()
	if m.stdin, err = m.cmd.StdinPipe(); err != nil { // at its end, with this process, the worker ends too
		return err
	}
	if err := m.cmd.Start(); err != nil {
		return err
	}
	go func() {
		defer close(m.done)
		m.err = m.cmd.Wait()
	}()
	c.process = m
	return nil
}

// kill ends the process at once.
func (m *member) kill() {
	_ = m.cmd.Process.Kill() // fails only if it has ended
	<-m.done
}

// retire ends the process in order, and waits. The error is the one that it ended with.
func (m *member) retire(patience time.Duration) error {
	_ = m.stdin.Close()
	select {
	case <-m.done:
	case <-time.After(patience):
		m.kill()
		return fmt.Errorf("%s did not end within %v", m.name, patience)
	}
	if m.err == nil {
		return nil
	}
	said := m.stderr.Bytes()
	return fmt.Errorf("%s: %w: %s", m.name, m.err, said[:min(len(said), 4000)])
}
