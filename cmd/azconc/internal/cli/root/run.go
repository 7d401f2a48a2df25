// Package root puts the groups of verbs together and runs a command line.
package root

import (
	"cmp"
	"context"
	"io"
	"strings"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore/policy"
	"github.com/spf13/cobra"

	"github.com/azconc/azconc/cmd/azconc/internal/cli"
	"github.com/azconc/azconc/cmd/azconc/internal/cli/complete"
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
	complete.Add(root, f, args)
	help, unknown := root.HelpFunc(), error(nil)
	root.SetHelpFunc(func(cmd *cobra.Command, args []string) {
		// cobra prints the help of the group for --help after a verb that does not exist, and succeeds.
		if unknown = cli.UnknownVerb(cmd); unknown == nil {
			help(cmd, args)
		}
	})
	cmd, err := root.ExecuteContextC(ctx)
	return f.Report(ctx, cmd, cmp.Or(err, unknown))
}

// Documented returns the tree of commands for those who make pages of it. Its commands cannot be run.
func Documented() *cobra.Command {
	return newRootCmd(cli.NewFactory(&cli.Streams{In: strings.NewReader(""), Out: io.Discard, Err: io.Discard}, nil))
}
