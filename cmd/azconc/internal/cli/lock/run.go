package lock

import (
	"context"
	"errors"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/azconc/azconc/cmd/azconc/internal/cli"
	"github.com/azconc/azconc/cmd/azconc/internal/cli/fail"
	"github.com/azconc/azconc/cmd/azconc/internal/cli/flags"
	"github.com/azconc/azconc/cmd/azconc/internal/cli/ref"
	"github.com/azconc/azconc/pessimistic"
	"github.com/azconc/azconc/pessimistic/election"
	"github.com/azconc/azconc/pessimistic/shared"
	"github.com/azconc/azconc/pkg/retry"
)

func newRunCmd(f *cli.Factory) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "run <container/name> [flags] -- <command> [<arg>...]",
		Short: "Run a command under a lock",
		Long: `Run a command under a lock, which is renewed until the command ends.

` + UnderLong + `

The blob of a lock is empty. A blob that has content is not locked, unless --allow-content is given.`,
		Example: `  azconc lock run jobs/nightly --no-wait -- ./nightly.sh
  azconc lock run jobs/deploy --wait 10m -- sh -c 'echo "fence $AZCONC_LOCK_FENCE"; ./deploy'`,
	}
	u := &UnderFlags{}
	return u.Verb(f, cmd, ParseLock, func(ctx context.Context, on ref.Blob, k *pessimistic.Locker) error {
		return RunUnder(ctx, f, u, named(u, k, on.Container, on.Blob))
	})
}

// named acquires a named lock.
func named(u *UnderFlags, k *pessimistic.Locker, container, name string) Acquisition {
	return Acquisition{Locker: k, What: container + "/" + name, Acquire: func(ctx context.Context) (*pessimistic.Hold, error) {
		return k.Lock(ctx, name, &u.Lock)
	}}
}

func newTableRunCmd(f *cli.Factory) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "run <table[/partition]> --container <container> [flags] -- <command> [<arg>...]",
		Short: "Run a command under the lock of a table",
		Long: `Run a command under the lock of a table, or of one partition. Tables have no leases, so a blob in --container stands for
them; a client that writes without acquiring the lock is not stopped. The lock "container/table/<table>" is a named lock like any other.

` + UnderLong,
		Example: `  azconc table lock run orders --container locks -- ./recount.sh
  azconc table lock run orders/eu --container locks --no-wait -- ./recount.sh eu`,
	}
	container := cmd.Flags().String("container", "", "`container` of the locks")
	var table ref.Table
	parse := func(arg string) (in ref.Blob, err error) {
		if table, err = ref.ParseTable(arg, 1); err != nil {
			if table, err = ref.ParseTable(arg, 2); err != nil {
				return in, err
			}
		}
		if *container == "" {
			return in, fail.WithHint(fail.Usagef("--container is missing"), "it names the container that the lock's blob is in")
		}
		return ref.ParseContainer(*container)
	}
	u := &UnderFlags{}
	return u.Verb(f, cmd, parse, func(ctx context.Context, in ref.Blob, k *pessimistic.Locker) error {
		lock, err := k.TableLock(table.Table, table.Partition)
		if err != nil {
			return &fail.UsageError{Err: err}
		}
		return RunUnder(ctx, f, u, named(u, k, in.Container, lock))
	})
}

func newSemaphoreRunCmd(f *cli.Factory) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "run <container/name> --slots <n> [flags] -- <command> [<arg>...]",
		Short: "Run a command as one of at most n at a time",
		Long: `Run a command as one of at most n at a time, across all machines that use the same name and the same --slots.

The command finds the number of its slot, 0 to n-1, in AZCONC_SLOT. Slot 0 is the lock "<container/name>/slot/0", and so on: azconc lock
list --prefix shows who holds them.

` + UnderLong,
		Example: `  azconc semaphore run jobs/encoders --slots 3 -- ./encode.sh movie.mp4
  azconc lock list jobs --prefix encoders/slot/`,
	}
	var slots int
	flags.Between(cmd.Flags(), &slots, "slots", 1000, "how many may run at a time")
	flags.Required(cmd.Flags(), "slots", "")
	u := &UnderFlags{}
	return u.Verb(f, cmd, ParseLock, func(ctx context.Context, on ref.Blob, k *pessimistic.Locker) error {
		s, err := shared.NewSemaphore(k, on.Blob, slots)
		if err != nil {
			return &fail.UsageError{Err: err}
		}
		var slot *shared.Slot
		return RunUnder(ctx, f, u, Acquisition{
			Locker: k, What: on.String(),
			Acquire: func(ctx context.Context) (_ *pessimistic.Hold, err error) {
				if slot, err = s.Acquire(ctx, &u.Lock); err != nil {
					return nil, err
				}
				return slot.Hold(), nil
			},
			Env: func() []string { return []string{fmt.Sprint("AZCONC_SLOT=", slot.Number)} },
		})
	})
}

func newElectRunCmd(f *cli.Factory) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "run <container/name> [flags] -- <command> [<arg>...]",
		Short: "Run a command while this machine is the leader",
		Long: `Run for election, and run the command once elected. If leadership is lost, azconc stops the command and runs for election
again. When the command ends by itself, azconc exits with its status, and another candidate can lead.

An election is a named lock: azconc lock show says who leads, since when, and with its fence the term. azconc lock break makes the
leader step down on whichever machine it is: its command is stopped before another candidate leads, and it runs for election again.

` + UnderLong + `

With --once azconc does not run for election again, and exits with 76 if leadership is lost.`,
		Example: `  azconc elect run jobs/scheduler -- sh -c './scheduler --term "$AZCONC_LOCK_FENCE"'`,
	}
	once := cmd.Flags().Bool("once", false, "do not run for election again after losing leadership")
	u := &UnderFlags{}
	return u.Verb(f, cmd, ParseLock, func(ctx context.Context, on ref.Blob, k *pessimistic.Locker) error {
		e, err := election.New(k, on.Blob, &election.Options{Candidacy: &u.Lock})
		if err != nil {
			return &fail.UsageError{Err: err}
		}
		return begin(ctx, f, u, Acquisition{Locker: k, What: on.String()}, func(r *running) error { return r.lead(ctx, e, *once) })
	})
}

// errTermOver ends a candidacy with the result of its last term.
var errTermOver = errors.New("the term is over")

// lead runs the command whenever this process is elected, until it ends by itself.
func (r *running) lead(ctx context.Context, e *election.Election, once bool) error {
	candidacy, cancel := context.WithCancelCause(context.WithoutCancel(ctx))
	elected := r.endOnSignal(cancel)
	defer func() { elected() }()
	var result error
	err := e.Run(candidacy, func(_ context.Context, h *pessimistic.Hold) error {
		elected()
		elected = func() {}
		if candidacy.Err() != nil { // it came too late
			return candidacy.Err()
		}
		result = r.hold(h)
		if _, left := errors.AsType[*CommandLeft](result); left {
			return election.Keep(errTermOver)
		}
		if lost, ok := errors.AsType[*LostRunning](result); ok && !once && ctx.Err() == nil {
			if !r.f.Quiet {
				r.f.Notef("%s: %v; running for election again", r.What, lost)
			}
			elected = r.endOnSignal(cancel)
			return result
		}
		return retry.Stop(errTermOver)
	})
	if errors.Is(err, errTermOver) {
		return result
	}
	return r.notAcquired(err)
}
