// Package root puts the groups of verbs together and runs a command line.
package root

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"runtime"
	"runtime/debug"
	"strings"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore/policy"
	"github.com/spf13/cobra"

	"github.com/azconc/azconc/cmd/azconc/internal/cli"
	"github.com/azconc/azconc/cmd/azconc/internal/cli/bench"
	"github.com/azconc/azconc/cmd/azconc/internal/cli/blob"
	"github.com/azconc/azconc/cmd/azconc/internal/cli/container"
	counters "github.com/azconc/azconc/cmd/azconc/internal/cli/counter"
	"github.com/azconc/azconc/cmd/azconc/internal/cli/demo"
	"github.com/azconc/azconc/cmd/azconc/internal/cli/dev"
	"github.com/azconc/azconc/cmd/azconc/internal/cli/doctor"
	"github.com/azconc/azconc/cmd/azconc/internal/cli/file"
	"github.com/azconc/azconc/cmd/azconc/internal/cli/flags"
	"github.com/azconc/azconc/cmd/azconc/internal/cli/group"
	"github.com/azconc/azconc/cmd/azconc/internal/cli/lock"
	"github.com/azconc/azconc/cmd/azconc/internal/cli/once"
	"github.com/azconc/azconc/cmd/azconc/internal/cli/queue"
	"github.com/azconc/azconc/cmd/azconc/internal/cli/table"
	"github.com/azconc/azconc/cmd/azconc/internal/cli/tf"
	"github.com/azconc/azconc/cmd/azconc/internal/cli/top"
)

// newRootCmd lists every group. A group lists its verbs in its own file.
func newRootCmd(f *cli.Factory) *cobra.Command {
	root := &cobra.Command{
		Use:               "azconc <command>",
		Short:             "Concurrency control for Azure Storage",
		Long:              "azconc changes, locks and consumes data in Azure Storage without losing concurrent work.",
		SilenceErrors:     true,
		SilenceUsage:      true,
		Args:              cobra.ArbitraryArgs,
		PersistentPreRunE: f.Begin,
		RunE: func(cmd *cobra.Command, args []string) error {
			if f.Version && len(args) == 0 {
				return f.Print(version())
			}
			return cli.RunGroup(cmd, args)
		},
		Example: `  azconc blob update jobs/state.json --jq '.n += 1'
  azconc help exit-codes`,
	}
	root.CompletionOptions.DisableDefaultCmd = true
	root.SetIn(f.In)
	root.SetOut(f.Out)
	root.SetErr(f.Err)
	root.SetHelpFunc(func(cmd *cobra.Command, _ []string) { printHelp(cmd.OutOrStdout(), cmd) })
	root.SetFlagErrorFunc(func(cmd *cobra.Command, err error) error {
		// The flags of a verb that does not exist are unknown to the group.
		return cmp.Or(cli.UnknownVerb(cmd), flags.FlagError(cmd, err))
	})
	f.AddFlags(root)
	root.Flags().BoolVar(&f.Version, "version", false, "print the version")
	root.SetHelpCommand(newHelpCmd())

	root.AddGroup(
		&cobra.Group{ID: "optimistic", Title: "Optimistic concurrency:"},
		&cobra.Group{ID: "pessimistic", Title: "Locks, leases and leaders:"},
		&cobra.Group{ID: "idempotent", Title: "Queues and idempotency:"},
		&cobra.Group{ID: "tool", Title: "Tools:"},
	)
	add := func(group string, cmds ...*cobra.Command) {
		for _, c := range cmds {
			c.GroupID = group
			root.AddCommand(c)
		}
	}
	tables := table.NewCmd(f)
	tables.AddCommand(lock.NewTableLockCmd(f)) // a lock, under the noun that it locks
	add("optimistic", blob.NewCmd(f), container.NewCmd(f), tables, counters.NewCmd(f))
	add("pessimistic", lock.NewCmd(f), lock.NewElectCmd(f), lock.NewSemaphoreCmd(f), group.NewCmd(f), file.NewCmd(f), file.NewShareCmd(f))
	add("idempotent", queue.NewCmd(f), once.NewCmd(f))
	add("tool", tf.NewCmd(f), bench.NewCmd(f), demo.NewCmd(f), dev.NewCmd(f), doctor.NewCmd(f), top.NewCmd(f), newVersionCmd(f), newCompletionCmd(f))
	root.AddCommand(newHelpTopics(root.PersistentFlags())...)
	return root
}

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
	answerCompletion(f, root, args)
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

// Version and Commit are set when a release is built; otherwise the build's own information says what this is.
var Version, Commit string

func newVersionCmd(f *cli.Factory) *cobra.Command {
	return &cobra.Command{
		Use: "version", Short: "Print the version", Example: "  azconc version -o json", Args: cli.ResourceArgs(),
		RunE: func(*cobra.Command, []string) error { return f.Print(version()) },
	}
}

type versionResult struct {
	Outcome string `json:"outcome"`
	Version string `json:"version"`
	Commit  string `json:"commit,omitempty"`
	Go      string `json:"go"`
	System  string `json:"system"`
}

func (r versionResult) Text(w io.Writer) {
	commit := ""
	if r.Commit != "" {
		commit = fmt.Sprintf("commit %.12s, ", r.Commit)
	}
	fmt.Fprintf(w, "azconc %s (%s%s, %s)\n", r.Version, commit, r.Go, r.System)
}

func version() versionResult {
	r := versionResult{Outcome: "ok", Version: Version, Commit: Commit, Go: runtime.Version(), System: runtime.GOOS + "/" + runtime.GOARCH}
	if info, ok := debug.ReadBuildInfo(); ok {
		r.Version = cmp.Or(r.Version, info.Main.Version)
		for _, s := range info.Settings {
			if s.Key == "vcs.revision" && r.Commit == "" {
				r.Commit = s.Value
			}
		}
	}
	return r
}
