package lock

import (
	"context"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/azconc/azconc/cmd/azconc/internal/cli"
	"github.com/azconc/azconc/cmd/azconc/internal/cli/fail"
	"github.com/azconc/azconc/cmd/azconc/internal/cli/ref"
)

type tableLockRunOptions struct {
	Table     ref.Table
	Container ref.Blob
	UnderFlags
}

func NewTableLockCmd(f *cli.Factory) *cobra.Command {
	return cli.NewGroupCmd("lock", "Lock a table, or a partition of it", tableLockRunVerb().Command(f))
}

func tableLockRunVerb() cli.Verb[tableLockRunOptions] {
	var container string
	return cli.Verb[tableLockRunOptions]{
		Use:   "run <table[/partition]> --container <container> [flags] -- <command> [<arg>...]",
		Short: "Run a command under the lock of a table",
		Long: `Run a command under the lock of a table, or of one partition. Tables have no leases, so a blob in --container stands for
them; a client that writes without acquiring the lock is not stopped. The lock "container/table/<table>" is a named lock like any other.

The command gets AZCONC_LOCK_NAME, AZCONC_LOCK_FENCE and AZCONC_LEASE_ID in its environment.

` + UnderLong,
		Example: `  azconc table lock run orders --container locks -- ./recount.sh
  azconc table lock run orders/eu --container locks --no-wait -- ./recount.sh eu`,
		Args: cobra.ArbitraryArgs,
		Flags: func(opts *tableLockRunOptions, set *pflag.FlagSet) {
			opts.Add(set)
			set.StringVar(&container, "container", "", "`container` of the locks")
		},
		Parse: func(opts *tableLockRunOptions, in cli.Input) (err error) {
			if err := opts.Take(in, "<table[/partition]>"); err != nil {
				return err
			}
			if opts.Table, err = ref.ParseTable(in.Args[0], 1); err != nil {
				if opts.Table, err = ref.ParseTable(in.Args[0], 2); err != nil {
					return err
				}
			}
			if container == "" {
				return fail.WithHint(fail.Usagef("--container is missing"), "it names the container that the lock's blob is in")
			}
			if opts.Container, err = ref.ParseContainer(container); err != nil {
				return err
			}
			return opts.Parse(in)
		},
		Run: tableLockRunRun,
	}
}

func tableLockRunRun(ctx context.Context, f *cli.Factory, opts *tableLockRunOptions) error {
	k, err := Locker(f, opts.Container, opts.LockerOptions(f))
	if err != nil {
		return err
	}
	lock, err := k.TableLock(opts.Table.Table, opts.Table.Partition)
	if err != nil {
		return &fail.UsageError{Err: err}
	}
	return RunUnder(f, ctx, &opts.UnderFlags, acquisition(k, opts.Container.Container+"/"+lock, lock, &opts.UnderFlags))
}
