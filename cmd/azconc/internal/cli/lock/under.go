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
	"github.com/azconc/azconc/cmd/azconc/internal/cli/show"
	"github.com/azconc/azconc/pessimistic"
	"github.com/azconc/azconc/pkg/observe"
)

// UnderLong is part of the help of every verb that runs a command while holding something.
const UnderLong = `If the lease is lost, everything that the command has started is stopped before another process can acquire the lease. azconc
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
lease, or earlier if there are many processes. It does not include processes of another user that azconc may not kill, which
keep it from releasing the lease, or those that a service runs on behalf of the command, such as a container. On other systems
it includes the command's process group (on Windows its job object), and if azconc is stopped or killed the command may continue
without the lock (on Windows it ends).

On a terminal the command belongs to the same job as azconc: Ctrl-C reaches it once, it can be suspended and resumed, and it
reads from the terminal while it is in the foreground. Ctrl-Z suspends the whole job, so nothing is renewed meanwhile; what it
does not reach, such as a daemon, continues. All of it is killed when the lease is about to expire. If Ctrl-C ends the command,
azconc ends by SIGINT too, so that a shell ends its loop.

With --end-with-parent, azconc ends when the process that started it has ended: it stops the command as if the lease was lost, and
releases the lock. The runner of a pipeline signals only the shell of a step, and what that shell has started gets nothing.

The command gets azconc's process id in AZCONC_PID. azconc exits with the command's status: 128+n if a signal ended it, 126 or
127 if it could not be started. The exit code is 75 if the lock was not acquired in time (-E changes that), and 76 if it was
lost while the command ran.`

// Under is a verb that runs a command while it holds what its first argument names.
type Under struct {
	Use, Short, Long, Example string

	Flags func(set *pflag.FlagSet) // in addition to UnderFlags; may be nil
	Parse func(in cli.Input) error // reads the first argument and these flags
	Run   func(ctx context.Context, u *UnderFlags) error
}

// Command returns the verb as cobra runs it.
func (v Under) Command(f *cli.Factory) *cobra.Command {
	return cli.Verb[UnderFlags]{
		Use: v.Use, Short: v.Short, Long: v.Long, Example: v.Example, Args: cobra.ArbitraryArgs,
		Flags: func(u *UnderFlags, set *pflag.FlagSet) {
			u.addAll(set)
			if v.Flags != nil {
				v.Flags(set)
			}
		},
		Parse: func(u *UnderFlags, in cli.Input) (err error) {
			if u.Command, err = CommandIn(in, strings.Fields(v.Use)[1]); err != nil {
				return err
			}
			if err := v.Parse(in); err != nil {
				return err
			}
			return u.parseAll(in.Flags)
		},
		Run: func(ctx context.Context, _ *cli.Factory, u *UnderFlags) error { return v.Run(ctx, u) },
	}.Command(f)
}

// CommandIn returns the command after the --, of a verb that has one argument before it, and prints no result.
func CommandIn(in cli.Input, name string) ([]string, error) {
	dash := in.Flags.ArgsLenAtDash()
	if dash < 0 {
		dash = len(in.Args)
	}
	if err := cli.ResourceArgs(name)(nil, in.Args[:dash]); err != nil {
		return nil, err
	}
	command := in.Args[dash:]
	if len(command) == 0 || command[0] == "" {
		return nil, fail.WithHint(fail.Usagef("<command> is missing"), "it comes after --, as in azconc "+in.Path+" "+show.Quote(in.Args[0])+" -- ./command.sh")
	}
	if in.Form != "" {
		return nil, fail.WithHint(fail.Usagef("%s and the command's output cannot both go to stdout", in.Form), "omit it")
	}
	return command, nil
}

// acquireFlags are the flags of every verb that acquires a lease and renews it while it is held.
type acquireFlags struct {
	Wait         time.Duration // 0: for as long as it takes
	NoWait       bool
	Duration     time.Duration
	Owner        string
	AllowContent bool

	duration string
}

func (a *acquireFlags) add(set *pflag.FlagSet) {
	set.DurationVarP(&a.Wait, "wait", "w", 0, "wait this long for the lock (default no limit)")
	set.BoolVarP(&a.NoWait, "no-wait", "n", false, "do not wait if another client holds it")
	set.StringVar(&a.duration, "duration", "30s", "how long others must wait if this process dies: 15s to 60s, or infinite")
	set.StringVar(&a.Owner, "owner", "", "name of this holder (default host/pid)")
	set.BoolVar(&a.AllowContent, "allow-content", false, "allow locking a blob that has content")
}

func (a *acquireFlags) parse(set *pflag.FlagSet) (err error) {
	if a.Duration, err = lease.ParseDuration("--duration", a.duration); err != nil {
		return err
	}
	waits := set.Changed("wait")
	switch {
	case a.NoWait && waits:
		return fail.Usagef("--wait and --no-wait cannot both be given")
	case a.Wait < 0:
		return fail.Usagef("--wait %v is negative", a.Wait)
	}
	a.NoWait = a.NoWait || waits && a.Wait == 0
	return nil
}

func (a *acquireFlags) lockerOptions(f *cli.Factory) *pessimistic.LockerOptions {
	return &pessimistic.LockerOptions{Owner: a.Owner, Duration: a.Duration, AllowContent: a.AllowContent,
		Hooks: observe.Join(f.Monitor.Hooks(), waitingNote(f))}
}

func (a *acquireFlags) lockOptions() *pessimistic.LockOptions {
	return &pessimistic.LockOptions{MaxWait: a.Wait, NoWait: a.NoWait}
}

// UnderFlags are the flags of every verb that runs a command under a lease.
type UnderFlags struct {
	acquireFlags
	Command     []string
	NotAcquired int
	KillAfter   time.Duration
	StatusFD    int
	AtLeast     time.Duration
	WithParent  WithParent
}

func (u *UnderFlags) addAll(set *pflag.FlagSet) {
	u.add(set)
	set.IntVarP(&u.NotAcquired, "conflict-exit-code", "E", exitNotAcquired, "exit code if it is not acquired in time")
	set.DurationVar(&u.KillAfter, "kill-after", defaultKillAfter, "time between TERM and KILL, if the lease lasts that long")
	set.IntVar(&u.StatusFD, "status-fd", 0, "file descriptor `n` to write JSON lines to: acquired or not_acquired, started, lost, exited, released or kept")
	flags.Metrics(set)
	set.DurationVar(&u.AtLeast, "hold-at-least", 0, "hold it at least this long, even if the command ends sooner")
	u.WithParent.Add(set, "end the command, or the wait, when the process that started azconc ends")
}

func (u *UnderFlags) parseAll(set *pflag.FlagSet) error {
	switch {
	case u.NotAcquired < 0 || u.NotAcquired > 255:
		return fail.Usagef("--conflict-exit-code %d is not between 0 and 255", u.NotAcquired)
	case u.KillAfter < 0:
		return fail.Usagef("--kill-after %v is negative", u.KillAfter)
	case u.AtLeast < 0:
		return fail.Usagef("--hold-at-least %v is negative", u.AtLeast)
	case u.StatusFD < 0 || u.StatusFD > 0 && u.StatusFD < 3:
		return fail.Usagef("--status-fd %d is not 3 or more", u.StatusFD)
	}
	if err := u.WithParent.Check(); err != nil {
		return err
	}
	return u.parse(set)
}

// LockerOptions are those of the lock to run under.
func (u *UnderFlags) LockerOptions(f *cli.Factory) *pessimistic.LockerOptions {
	o := u.lockerOptions(f)
	o.AtLeast = u.AtLeast
	return o
}

// waitingNote prints which holder the command waits for, and since when it holds the lock: at a terminal whenever the wait begins again,
// and elsewhere, where the lines may go to a log, at most once a minute.
func waitingNote(f *cli.Factory) observe.Hooks {
	if f.Quiet {
		return observe.Hooks{}
	}
	var last time.Time
	return observe.Hooks{Event: func(_ context.Context, e observe.Event) {
		if e.Kind != observe.Waiting || !f.ErrTerminal && e.At.Sub(last) < time.Minute {
			return
		}
		last = e.At
		since := ""
		if !e.Since.IsZero() {
			since = " since " + show.Time(e.Since)
		}
		f.Notef("waiting for %s, held by %s%s", e.Resource, show.OrAnother(e.Holder), since)
	}}
}
