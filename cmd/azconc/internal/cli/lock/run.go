package lock

import (
	"context"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/azconc/azconc/cmd/azconc/internal/cli"
	"github.com/azconc/azconc/cmd/azconc/internal/cli/fail"
	"github.com/azconc/azconc/cmd/azconc/internal/cli/ref"
	"github.com/azconc/azconc/cmd/azconc/internal/cli/show"
	"github.com/azconc/azconc/pessimistic"
	"github.com/azconc/azconc/pkg/lease"
	"github.com/azconc/azconc/pkg/observe"
)

type runOptions struct {
	Lock          ref.Blob
	File          string // instead: to be locked through the file system
	Shared        bool   // with File
	Shell         string // command line for a shell
	TakeoverDelay time.Duration
	UnderFlags
}

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
reads from the terminal while it is in the foreground. Ctrl-Z suspends the whole job, so nothing is renewed meanwhile, and the
job is killed when the lease is about to expire. If Ctrl-C ends the command, azconc ends by SIGINT too, so that a shell ends
its loop.

With --end-with-parent, azconc ends when the process that started it has ended: it stops the command as if the lease was lost, and
releases the lock. The runner of a pipeline signals only the shell of a step, and what that shell has started gets nothing.

The command gets azconc's process id in AZCONC_PID. azconc exits with the command's status: 128+n if a signal ended it, 126 or
127 if it could not be started. The exit code is 75 if the lock was not acquired in time (-E changes that), and 76 if it was
lost while the command ran.`

func runVerb() cli.Verb[runOptions] {
	return cli.Verb[runOptions]{
		Use:         "run (<container/name> | --file <path>) [flags] -- <command> [<arg>...]",
		Annotations: map[string]string{cli.ResourceFlag: "file"},
		Short:       "Run a command under a lock",
		Long: `Run a command under a lock, which is renewed until the command ends.

The command gets AZCONC_LOCK_NAME, AZCONC_LOCK_FENCE (larger than that of every holder before) and AZCONC_LEASE_ID in its
environment.

` + UnderLong + `

The blob of a lock is empty. A blob that has content is not locked, unless --allow-content is given.

With --file no lease is acquired: a file is locked through the file system, such as a mounted share's, and no account is
needed. The file is created if it does not exist, and it is never deleted. -s, -n, -w, -E and -c are those of flock(1). It
works where the mount passes locks on to the server: NFS 4.1, and SMB without nobrl. If azconc is killed, the kernel keeps the
lock until what azconc has started has ended. If the file is deleted or replaced, the lock is lost, which is noticed within a
second. There is no fence, and azconc cannot notice that the connection to the server, and the lock with it, is gone.`,
		Example: `  azconc lock run jobs/nightly --no-wait -- ./nightly.sh
  azconc lock run jobs/deploy --wait 10m -- sh -c 'echo "fence $AZCONC_LOCK_FENCE"; ./deploy'
  azconc lock run --file /mnt/reports/.lock -- ./report.sh
  azconc lock run --file /mnt/reports/.lock -s -w 10 -c './read.sh | gzip > copy.gz'`,
		Args: cobra.ArbitraryArgs,
		Flags: func(opts *runOptions, set *pflag.FlagSet) {
			opts.Add(set)
			set.StringVar(&opts.File, "file", "", "`path` of a file to lock through the file system, instead of a lease")
			set.BoolVarP(&opts.Shared, "shared", "s", false, "with --file, acquire a shared lock, which excludes only exclusive ones")
			set.StringVarP(&opts.Shell, "command", "c", "", "`line` for a shell to run, instead of a command after --")
			set.DurationVar(&opts.TakeoverDelay, "takeover-delay", 0, "after a holder that did not release the lock, wait this long before running the command")
		},
		Parse: func(opts *runOptions, in cli.Input) (err error) {
			if err := opts.takeCommand(in); err != nil {
				return err
			}
			if err := opts.checkFile(in.Flags); err != nil {
				return err
			}
			if opts.File == "" {
				if opts.Lock, err = ParseLock(in.Args[0]); err != nil {
					return err
				}
			}
			if err := opts.Parse(in); err != nil {
				return err
			}
			if opts.TakeoverDelay < 0 || opts.TakeoverDelay > time.Minute {
				return fail.Usagef("--takeover-delay %s is not between 0s and 60s", show.Duration(opts.TakeoverDelay))
			}
			return nil
		},
		Run: runRun,
	}
}

// takeCommand reads the command, after -- or from --command, and requires the name of the lock unless --file is given.
func (opts *runOptions) takeCommand(in cli.Input) error {
	names := []string{"<container/name>"}
	if opts.File != "" {
		names = nil
	}
	if opts.Shell == "" {
		return opts.Take(in, names...)
	}
	if dash := in.Flags.ArgsLenAtDash(); dash >= 0 && len(in.Args) > dash {
		return fail.Usagef("--command and a command after -- cannot both be given")
	}
	opts.Command = []string{"sh", "-c", opts.Shell}
	return cli.ResourceArgs(names...)(nil, in.Args)
}

func runRun(ctx context.Context, f *cli.Factory, opts *runOptions) error {
	if opts.File != "" {
		return fileRun(ctx, f, opts)
	}
	o := opts.LockerOptions(f)
	o.TakeoverDelay = opts.TakeoverDelay
	k, err := Locker(f, opts.Lock, o)
	if err != nil {
		return err
	}
	return RunUnder(f, ctx, &opts.UnderFlags, acquisition(k, opts.Lock.String(), opts.Lock.Blob, &opts.UnderFlags))
}

// waitingNote prints which holder the command waits for, and since when it holds the lock: at a terminal whenever the wait begins again, and elsewhere, where the
// lines may go to a log, at most once a minute.
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

// acquisition acquires a named lock.
func acquisition(k *pessimistic.Locker, what, name string, u *UnderFlags) Acquisition {
	return Acquisition{
		What: what,
		Acquire: func(ctx context.Context) (Held, error) {
			h, err := u.lock(ctx, k, name)
			if err != nil {
				return nil, err // not a nil *Hold in a non-nil interface
			}
			return h, nil
		},
		Env:   func(h Held) []string { return Env(what, h.(*pessimistic.Hold)) },
		Facts: func(h Held) map[string]any { return Facts(what, h.(*pessimistic.Hold)) },
		Breaking: func(ctx context.Context, h Held) (time.Duration, error) {
			return Breaking(ctx, k, h.(*pessimistic.Hold))
		},
	}
}

// Breaking returns after which time a lock that is being broken has certainly ended. Breaking it again returns that time and
// changes nothing.
func Breaking(ctx context.Context, k *pessimistic.Locker, h *pessimistic.Hold) (time.Duration, error) {
	b, err := k.Break(ctx, h.Name(), &pessimistic.BreakOptions{Conditions: lease.Conditions{IfMatch: h.ETag()}})
	return b.After, err
}

// lock acquires a named lock as the flags say.
func (a *acquireFlags) lock(ctx context.Context, k *pessimistic.Locker, name string) (*pessimistic.Hold, error) {
	return k.Lock(ctx, name, a.lockOptions())
}

func (a *acquireFlags) lockOptions() *pessimistic.LockOptions {
	return &pessimistic.LockOptions{MaxWait: a.Wait, NoWait: a.NoWait}
}

func Env(what string, h *pessimistic.Hold) []string {
	return []string{"AZCONC_LOCK_NAME=" + what, "AZCONC_LOCK_FENCE=" + h.Fence().String(), "AZCONC_LEASE_ID=" + h.ID()}
}

func Facts(what string, h *pessimistic.Hold) map[string]any {
	return map[string]any{
		"lock": what, "owner": h.Owner(), "fence": int64(h.Fence()), "etag": string(h.ETag()),
		"previous": string(h.Previous().Ended), "waited_ms": h.Stats().Waited.Milliseconds(), "requests": h.Stats().Requests,
	}
}
