package change

import (
	"context"
	"io"
	"strconv"
	"time"

	"github.com/azconc/azconc/cmd/azconc/internal/cli"
	"github.com/azconc/azconc/cmd/azconc/internal/cli/fail"
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

func (c *execChange) Apply(ctx context.Context, base BaseContent) ([]byte, error) {
	command := &proc.Shell{
		Line: c.command, What: "the filter", Stdin: base.Data, Stderr: c.stderr,
		Env: append(append([]string{}, c.env...),
			"AZCONC_RESOURCE="+base.Resource, "AZCONC_ETAG="+base.ETag, "AZCONC_ATTEMPT="+strconv.Itoa(base.Attempt)),
		Grace: func(error) time.Duration { return filterGrace },
	}
	end, err := command.Run(ctx)
	failed := &fail.FilterError{What: end.Failure(true), Status: end.Code, Stderr: end.Said}
	switch {
	case ctx.Err() != nil:
		return nil, context.Cause(ctx)
	case err != nil:
		return nil, &fail.FilterError{What: "the filter could not be run", Err: err}
	case failed.What != "":
		return nil, failed
	case len(end.Out) == 0 && len(base.Data) > 0 && !c.allowEmpty:
		return nil, fail.WithHint(&fail.FilterError{What: "the filter succeeded and printed nothing"},
			"the status of a pipeline is that of its last command; to make the content empty, give --allow-empty")
	}
	return end.Out, nil
}
