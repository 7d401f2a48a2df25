package cli

import (
	"context"
	"io"
	"strconv"
	"time"
)

// execChange pipes the content through a shell command.
type execChange struct {
	command string
	env     Env
	stderr  io.Writer
}

// filterGrace is the time between TERM and KILL for a filter.
const filterGrace = 2 * time.Second

func (c *execChange) apply(ctx context.Context, base baseContent) ([]byte, error) {
	command := &shellCommand{
		line: c.command, what: "the filter", stdin: base.Data, stderr: c.stderr,
		env: append(append([]string{}, c.env...),
			"AZCONC_RESOURCE="+base.Resource, "AZCONC_ETAG="+base.ETag, "AZCONC_ATTEMPT="+strconv.Itoa(base.Attempt)),
		grace: func(error) time.Duration { return filterGrace },
	}
	end, err := command.run(ctx)
	failed := &filterError{what: end.failure(true), status: end.Code, stderr: end.said}
	switch {
	case ctx.Err() != nil:
		return nil, context.Cause(ctx)
	case err != nil:
		return nil, &filterError{what: "the filter could not be run", err: err}
	case failed.what != "":
		return nil, failed
	}
	return end.out, nil
}
