package lock

import (
	"context"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/azconc/azconc/cmd/azconc/internal/cli"
	"github.com/azconc/azconc/cmd/azconc/internal/cli/fail"
	"github.com/azconc/azconc/cmd/azconc/internal/cli/flags"
	"github.com/azconc/azconc/cmd/azconc/internal/cli/lease"
	"github.com/azconc/azconc/cmd/azconc/internal/cli/ref"
	"github.com/azconc/azconc/cmd/azconc/internal/cli/show"
	"github.com/azconc/azconc/pessimistic"
	"github.com/azconc/azconc/pkg/observe"
)

// UnderLong is part of the help of every verb that runs a command while holding something.
const UnderLong = `The command gets AZCONC_LOCK_NAME, AZCONC_LEASE_ID and AZCONC_LOCK_FENCE in its environment. The fence is larger than
that of every earlier holder of the lock.

If the lease is lost, everything that the command has started is stopped before another process can acquire the lease. azconc
exits with the command's status, with 75 if the lock was not acquired in time, and with 76 if it was lost while the command
ran. About signals, processes that stay, terminals and exit codes: azconc help holding.`

// HoldingHelp is the topic to which UnderLong refers.
const HoldingHelp = `The verbs that run a command while they hold a lock, a slot of a semaphore or leadership treat it alike: azconc lock run, table lock run,
semaphore run, elect run and once run.

Signals are passed on to the command and its process group. If the lease is lost (it could not be renewed, or it was broken),
everything that the command has started is stopped before another process can acquire the lease: TERM first, KILL in time, or
KILL at once if no time is left. Processes that the command leaves running when it ends get TERM and, after --kill-after, KILL.
The lock is released when none of them is left.

On Linux that includes processes in other process groups and sessions and daemons, and it holds even if azconc is stopped or
killed: a watchdog, which is the command's parent process, kills everything half a second before another process can acquire the
lease, or earlier if there are many processes or the processors are not free. It does not include processes of another user that azconc may not kill, which
keep it from releasing the lease, or those that a service runs on behalf of the command, such as a container. On other systems
it includes the command's process group (on Windows its job object), and if azconc is stopped or killed the command may continue
without the lock (on Windows it ends).

On a terminal the command belongs to the same job as azconc: Ctrl-C reaches it once, it can be suspended and resumed, and it
reads from the terminal while it is in the foreground. Ctrl-Z, or a command that stops itself, suspends the whole job, so nothing
is renewed meanwhile; what it does not reach, such as a daemon, continues. All of it is killed when the lease is about to expire. If Ctrl-C ends the command,
azconc ends by SIGINT too, so that a shell ends its loop.

With --end-with-parent, azconc ends when the process that started it has ended: it stops the command as if the lease was lost, and
releases the lock. The runner of a pipeline signals only the shell of a step, and what that shell has started gets nothing.

The command inherits azconc's environment, credentials included (azconc help environment says how to withhold them), and gets azconc's
process id in AZCONC_PID. Its status becomes azconc's: see azconc help exit-codes.`

// Verb makes cmd a verb that runs a command while it holds what its first argument names. parse reads that argument and the verb's own
// flags; it returns the name of a blob in the container of the locks. run acquires, by k, and runs the command.
func (u *UnderFlags) Verb(f *cli.Factory, cmd *cobra.Command, parse func(arg string) (ref.Blob, error), run func(ctx context.Context, on ref.Blob, k *pessimistic.Locker) error) *cobra.Command {
	u.addAll(cmd.Flags())
	RunsCommand(cmd)
	check := func(arg string) (on ref.Blob, err error) {
		if u.Command, err = CommandIn(cmd); err != nil {
			return on, err
		}
		if on, err = parse(arg); err != nil {
			return on, err
		}
		return on, u.parseAll(cmd.Flags())
	}
	open := func(on ref.Blob) (*pessimistic.Locker, error) { return Locker(f, on, u.lockerOptions(f)) }
	return cli.On(f, cmd, check, open, func(ctx context.Context, on ref.Blob, k *pessimistic.Locker) (cli.Result, error) {
		return nil, run(ctx, on, k)
	})
}

// RunsCommand marks a verb that runs a command, whose output goes to stdout.
func RunsCommand(cmd *cobra.Command) {
	cmd.Args, cmd.Annotations = cobra.ArbitraryArgs, map[string]string{cli.TextOnly: "true"}
}

// CommandIn returns the command after the --, of a verb that has one argument before it.
func CommandIn(cmd *cobra.Command) ([]string, error) {
	args, dash := cmd.Flags().Args(), cmd.ArgsLenAtDash()
	if dash < 0 {
		dash = len(args)
	}
	if err := cli.ResourceArgs(strings.Fields(cmd.Use)[1])(cmd, args[:dash]); err != nil {
		return nil, err
	}
	command := args[dash:]
	if len(command) == 0 || command[0] == "" {
		return nil, fail.WithHint(fail.Usagef("<command> is missing"), "it comes after --, as in "+cmd.CommandPath()+" "+show.Quote(args[0])+" -- ./command.sh")
	}
	return command, nil
}

// acquireFlags are the flags of every verb that acquires a lease and renews it while it is held.
type acquireFlags struct {
	Lock   pessimistic.LockOptions
	Locker pessimistic.LockerOptions
}

func (a *acquireFlags) add(set *pflag.FlagSet) {
	flags.AnyDuration(set, &a.Lock.MaxWait, "wait", "w", "wait this long for the lock (default no limit)", func(d time.Duration) error {
		if d < 0 {
			return fail.Usagef("--wait %v is negative", d)
		}
		return nil
	})
	set.BoolVarP(&a.Lock.NoWait, "no-wait", "n", false, "do not wait if another client holds it")
	lease.AddDuration(set, &a.Locker.Duration, "30s", "how long others must wait if this process dies: 15s to 60s, or infinite")
	set.StringVar(&a.Locker.Owner, "owner", "", "name of this holder (default host/pid)")
	set.BoolVar(&a.Locker.AllowContent, "allow-content", false, "allow locking a blob that has content")
}

func (a *acquireFlags) parse(set *pflag.FlagSet) error {
	waits := set.Changed("wait")
	if a.Lock.NoWait && waits {
		return fail.Usagef("--wait and --no-wait cannot both be given")
	}
	a.Lock.NoWait = a.Lock.NoWait || waits && a.Lock.MaxWait == 0
	return nil
}

func (a *acquireFlags) lockerOptions(f *cli.Factory) *pessimistic.LockerOptions {
	a.Locker.Hooks = observe.Join(f.Monitor.Hooks(), WaitingNote(f))
	return &a.Locker
}

// UnderFlags are the flags of every verb that runs a command under a lease.
type UnderFlags struct {
	acquireFlags
	Command     []string
	NotAcquired int
	KillAfter   time.Duration
	StatusFD    int
	WithParent  WithParent
}

func (u *UnderFlags) addAll(set *pflag.FlagSet) {
	u.add(set)
	u.KillAfter = defaultKillAfter
	set.IntVarP(&u.NotAcquired, "conflict-exit-code", "E", exitNotAcquired, "exit code if it is not acquired in time")
	flags.Duration(set, &u.KillAfter, "kill-after", true, "time between TERM and KILL, if the lease lasts that long")
	set.IntVar(&u.StatusFD, "status-fd", 0, "file descriptor `n` to write JSON lines to: acquired or not_acquired, started, lost, exited, released or kept")
	flags.Metrics(set)
	flags.Duration(set, &u.Locker.AtLeast, "hold-at-least", true, "hold it at least this long, even if the command ends sooner")
	u.WithParent.Add(set, "end the command, or the wait, when the process that started azconc ends")
}

func (u *UnderFlags) parseAll(set *pflag.FlagSet) error {
	switch {
	case u.NotAcquired < 0 || u.NotAcquired > 255:
		return fail.Usagef("--conflict-exit-code %d is not between 0 and 255", u.NotAcquired)
	case u.StatusFD < 0 || u.StatusFD > 0 && u.StatusFD < 3:
		return fail.Usagef("--status-fd %d is not 3 or more", u.StatusFD)
	}
	if err := u.WithParent.Check(); err != nil {
		return err
	}
	return u.parse(set)
}

// WaitingNote prints which holder the command waits for, and since when it holds the lock: at a terminal whenever the wait begins again,
// and elsewhere, where the lines may go to a log, at most once a minute.
func WaitingNote(f *cli.Factory) observe.Hooks {
	if f.Quiet {
		return observe.Hooks{}
	}
	var last time.Time
	return observe.Hooks{Event: func(_ context.Context, e observe.Event) {
		if e.Kind != observe.Waiting || !f.ErrTerminal && e.At.Sub(last) < time.Minute {
			return
		}
		last = e.At
		held := "" // by an unknown one, or by nobody while others came before
		if e.Holder != "" {
			held = ", held by " + e.Holder
		}
		if !e.Since.IsZero() {
			held += " since " + show.Time(e.Since)
		}
		f.Notef("waiting for %s%s", e.Resource, held)
	}}
}
