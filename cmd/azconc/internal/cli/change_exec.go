package cli

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os/exec"
	"strconv"
	"strings"
	"time"
)

// execChange pipes the content through a shell command.
type execChange struct {
	command string
	env     Env
	stderr  io.Writer
}

// filterGrace is what a filter gets between TERM and KILL.
const filterGrace = 2 * time.Second

func (c *execChange) apply(ctx context.Context, base baseContent) ([]byte, error) {
	var out bytes.Buffer
	said := &tail{limit: 4 << 10}
	cmd := exec.CommandContext(ctx, "sh", "-c", c.command)
	cmd.Stdin, cmd.Stdout, cmd.Stderr = bytes.NewReader(base.Data), &out, io.MultiWriter(c.stderr, said)
	cmd.Env = append(append([]string{}, c.env...),
		"AZCONC_RESOURCE="+base.Resource, "AZCONC_ETAG="+base.ETag, "AZCONC_ATTEMPT="+strconv.Itoa(base.Attempt))
	ownGroup(cmd)
	cmd.WaitDelay = filterGrace
	err := cmd.Run()
	killGroup(cmd)
	switch {
	case ctx.Err() != nil:
		return nil, context.Cause(ctx)
	case err == nil:
		return out.Bytes(), nil
	}
	failed := &filterError{what: "the filter could not be run", stderr: strings.TrimSpace(said.String()), err: err}
	if exit, ok := errors.AsType[*exec.ExitError](err); ok {
		failed.what, failed.err = describeExit(exit), nil
		failed.status = exit.ExitCode()
	} else if errors.Is(err, exec.ErrWaitDelay) {
		failed.what, failed.err = "the filter left a process behind that holds its output open", nil
	}
	return nil, failed
}

func describeExit(exit *exec.ExitError) string {
	if code := exit.ExitCode(); code >= 0 {
		return fmt.Sprintf("the filter exited with status %d", code)
	}
	return "the filter was ended by a " + strings.TrimPrefix(exit.String(), "signal: ") + " signal"
}

// tail keeps the last bytes of what is written to it.
type tail struct {
	limit int
	data  []byte
}

func (t *tail) Write(p []byte) (int, error) {
	t.data = append(t.data, p...)
	if extra := len(t.data) - t.limit; extra > 0 {
		t.data = t.data[extra:]
	}
	return len(p), nil
}

func (t *tail) String() string { return strings.ToValidUTF8(string(t.data), "") }
