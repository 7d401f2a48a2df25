package cli

import (
	"context"
)

// Run executes one command line and returns the exit code. It is the whole of azconc but for the process: it reads and
// writes nothing but streams, env, the file system and the service, and leaves no goroutine behind.
func Run(ctx context.Context, args []string, streams *Streams, env Env) int {
	f := newFactory(streams, env)
	defer f.close()
	root := newRootCmd(f)
	root.SetArgs(append([]string{}, args...))
	cmd, err := root.ExecuteContextC(ctx)
	return f.report(ctx, cmd, err)
}
