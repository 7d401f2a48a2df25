package root

import (
	"context"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore/policy"

	"github.com/azconc/azconc/cmd/azconc/internal/cli"
)

// Run executes one command line and returns the exit code. It is the whole of azconc but for the process: it reads and
// writes nothing but streams, env, the file system and the service, and leaves no goroutine behind.
func Run(ctx context.Context, args []string, streams *cli.Streams, env cli.Env) int {
	return run(ctx, args, streams, env, nil)
}

// run is Run with a wire in place of the network, for tests.
func run(ctx context.Context, args []string, streams *cli.Streams, env cli.Env, wire policy.Transporter) int {
	f := cli.NewFactory(streams, env)
	f.Wire = wire
	defer f.Close()
	root := newRootCmd(f)
	root.SetArgs(append([]string{}, args...))
	cmd, err := root.ExecuteContextC(ctx)
	return f.Report(ctx, cmd, err)
}
