package change

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"strconv"
	"sync"
	"time"

	"github.com/azconc/azconc/cmd/azconc/internal/cli"
	"github.com/azconc/azconc/cmd/azconc/internal/cli/fail"
	"github.com/azconc/azconc/cmd/azconc/internal/cli/monitor"
	"github.com/azconc/azconc/cmd/azconc/internal/proc"
)

// execChange pipes the content through a shell command.
type execChange struct {
	command    string
	env        cli.Env
	stderr     io.Writer
	allowEmpty bool
}

// filterGrace is the time between TERM and KILL for a filter.
const filterGrace = 2 * time.Second

// Filter is a change that reads the content and writes the new one, without all of it in memory.
type Filter interface {
	// Stream runs the filter once, on base without its Data: from reads the content, of size bytes, and to receives what the
	// filter prints. After an error that is part of it, or nothing.
	Stream(ctx context.Context, base BaseContent, from io.Reader, size int64, to io.Writer) error
}

func (c *execChange) Apply(ctx context.Context, base BaseContent) ([]byte, error) {
	var out bytes.Buffer
	if err := c.Stream(ctx, base, bytes.NewReader(base.Data), int64(len(base.Data)), &out); err != nil {
		return nil, err
	}
	return out.Bytes(), nil
}

// Stream implements Filter.
func (c *execChange) Stream(ctx context.Context, base BaseContent, from io.Reader, size int64, to io.Writer) error {
	in, out := &input{from: from}, &output{to: to}
	command := &proc.Shell{
		Line: c.command, What: "the filter", Stdin: in, Stdout: out, Stderr: c.stderr,
		Env: append(monitor.Environ(ctx, c.env),
			"AZCONC_RESOURCE="+base.Resource, "AZCONC_ETAG="+base.ETag, "AZCONC_ATTEMPT="+strconv.Itoa(base.Attempt)),
		Grace: func(error) time.Duration { return filterGrace },
	}
	end, err := command.Run(ctx)
	failed := &fail.FilterError{What: end.Failure(true), Status: end.Code, Stderr: end.Said}
	switch {
	case ctx.Err() != nil:
		return context.Cause(ctx)
	case out.failure() != nil: // which may have ended the filter
		return fmt.Errorf("keep what the filter prints: %w", out.failure())
	case in.failure() != nil: // and the filter took what there was for all
		return fmt.Errorf("give the content to the filter: %w", in.failure())
	case err != nil:
		return &fail.FilterError{What: "the filter could not be run", Err: err}
	case failed.What != "":
		return failed
	case out.size() == 0 && size > 0 && !c.allowEmpty:
		return fail.WithHint(&fail.FilterError{What: "the filter succeeded and printed nothing"},
			"the status of a pipeline is that of its last command; to make the content empty, give --allow-empty")
	}
	return nil
}

// input remembers why the content could not be read: the filter sees an end, as of content that is whole.
type input struct {
	mu   sync.Mutex
	from io.Reader
	err  error
}

func (i *input) Read(p []byte) (int, error) {
	n, err := i.from.Read(p)
	if err != nil && err != io.EOF {
		i.mu.Lock()
		defer i.mu.Unlock()
		i.err = err
	}
	return n, err
}

func (i *input) failure() error {
	i.mu.Lock()
	defer i.mu.Unlock()
	return i.err
}

// output counts what the filter prints, and remembers why it could not be kept.
type output struct {
	mu  sync.Mutex
	to  io.Writer
	n   int64
	err error
}

func (o *output) Write(p []byte) (int, error) {
	n, err := o.to.Write(p)
	o.mu.Lock()
	defer o.mu.Unlock()
	o.n += int64(n)
	if o.err == nil {
		o.err = err
	}
	return n, err
}

func (o *output) failure() error {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.err
}

func (o *output) size() int64 {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.n
}
