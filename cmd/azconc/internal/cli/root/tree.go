package root

import (
	"cmp"

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
				return versionRun(cmd.Context(), f, nil)
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
	add("pessimistic", lock.NewCmd(f), lock.NewElectCmd(f), lock.NewSemaphoreCmd(f), file.NewCmd(f), file.NewShareCmd(f))
	add("idempotent", queue.NewCmd(f), once.NewCmd(f))
	add("tool", tf.NewCmd(f), bench.NewCmd(f), demo.NewCmd(f), dev.NewCmd(f), doctor.NewCmd(f), top.NewCmd(f), versionVerb().Command(f), newCompletionCmd(f))
	flags.AsPeopleWriteThem(root)
	root.AddCommand(newHelpTopics(root.PersistentFlags())...)
	return root
}
