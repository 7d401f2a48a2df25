package lock

import (
	"context"
	"errors"
	"io"
	"os"
	"os/signal"
	"slices"
	"time"

	"github.com/spf13/pflag"

	"github.com/azconc/azconc/cmd/azconc/internal/cli"
	"github.com/azconc/azconc/cmd/azconc/internal/cli/fail"
	"github.com/azconc/azconc/cmd/azconc/internal/cli/flags"
	"github.com/azconc/azconc/cmd/azconc/internal/cli/lease"
	"github.com/azconc/azconc/cmd/azconc/internal/cli/monitor"
	"github.com/azconc/azconc/cmd/azconc/internal/proc"
	"github.com/azconc/azconc/pessimistic"
	"github.com/azconc/azconc/pkg/observe"
)

const (
	exitNotAcquired  = 75
	releaseMargin    = 500 * time.Millisecond // between the last process's end and the lease's
	defaultKillAfter = 10 * time.Second
)

// acquireFlags are the flags of every verb that acquires a lease and renews it while it is held.
type acquireFlags struct {
	Wait     time.Duration // 0: for as long as it takes
	NoWait   bool
	Duration time.Duration
	Owner    string

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

func (a *acquireFlags) parse(set *pflag.FlagSet) error {
	var err error
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

func (u *UnderFlags) Add(set *pflag.FlagSet) {
	u.acquireFlags.add(set)
	set.IntVarP(&u.NotAcquired, "conflict-exit-code", "E", exitNotAcquired, "exit code if it is not acquired in time")
	set.DurationVar(&u.KillAfter, "kill-after", defaultKillAfter, "time between TERM and KILL, if the lease lasts that long")
	set.IntVar(&u.StatusFD, "status-fd", 0, "file descriptor `n` to write JSON lines to: acquired or not_acquired, started, lost, exited, released or kept")
	flags.Metrics(set)
	set.DurationVar(&u.AtLeast, "hold-at-least", 0, "hold it at least this long, even if the command ends sooner")
	AddWithParent(set, &u.WithParent, "end the command, or the wait, when the process that started azconc ends")
}

// Take reads the command after the --. Before it in must have the named arguments.
func (u *UnderFlags) Take(in cli.Input, names ...string) error {
	dash := in.Flags.ArgsLenAtDash()
	if dash < 0 {
		dash = len(in.Args)
		if dash >= len(names) {
			return fail.WithHint(fail.Usagef("<command> is missing"), "it comes after --, as in azconc "+in.Path+" jobs/nightly -- ./nightly.sh")
		}
	}
	if err := cli.ResourceArgs(names...)(nil, in.Args[:dash]); err != nil {
		return err
	}
	if u.Command = in.Args[dash:]; len(u.Command) == 0 || u.Command[0] == "" {
		return fail.Usagef("<command> is missing after --")
	}
	return nil
}

func (u *UnderFlags) Parse(in cli.Input) error {
	if in.Form != "" {
		return fail.WithHint(fail.Usagef("%s and the command's output cannot both go to stdout", in.Form), "--status-fd 3 3>status.json writes JSON lines")
	}
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
	return u.acquireFlags.parse(in.Flags)
}

// LockerOptions are those of the lock to run under.
func (u *UnderFlags) LockerOptions(f *cli.Factory) *pessimistic.LockerOptions {
	return &pessimistic.LockerOptions{Owner: u.Owner, Duration: u.Duration, AtLeast: u.AtLeast, AllowContent: u.AllowContent,
		Hooks: observe.Join(f.Monitor.Hooks(), waitingNote(f))}
}

// Held is a lease that a command runs under.
type Held interface {
	Context() context.Context
	Valid() bool
	Err() error
	Release(ctx context.Context) error
	Remaining() (stop, end time.Duration, changed <-chan struct{})
}

// Acquisition says how a lease is acquired, and what the command finds in its environment.
type Acquisition struct {
	What    string // for people: "jobs/nightly"
	lost    string // what a loss means, if its error does not say it
	Acquire func(ctx context.Context) (Held, error)
	Env     func(Held) []string
	Facts   func(Held) map[string]any
	inherit func(Held) []*os.File // files that the command keeps open; may be nil

	// Breaking returns after which time a lease that is being broken has certainly ended, 0 if it is over: see
	// pessimistic.BreakResult. Nil means that this is unknown: the command is then killed at once.
	Breaking func(ctx context.Context, h Held) (time.Duration, error)

	Out    io.Writer                               // where the command's output goes, if not to ours
	Finish func(ctx context.Context, h Held) error // after its success, before the release; ctx may have ended
}

// RunUnder acquires, runs the command, stops it if what it holds is lost, and releases when nothing of it is left.
func RunUnder(f *cli.Factory, ctx context.Context, u *UnderFlags, a Acquisition) error {
	return begin(f, ctx, u, a, func(r *running) error {
		holding, acquired := r.waiting()
		h, err := a.Acquire(holding)
		acquired()
		if err != nil {
			return r.notAcquired(err)
		}
		if holding.Err() != nil { // it came too late
			_ = h.Release(holding)
			return context.Cause(holding)
		}
		return r.hold(h)
	})
}

// running is a command that runs, or will run, under a lease.
type running struct {
	Acquisition
	f       *cli.Factory
	ctx     context.Context
	u       *UnderFlags
	status  *statusLines
	signals chan os.Signal
}

// begin prepares to run a command under a lease, and calls run, which acquires the lease.
func begin(f *cli.Factory, ctx context.Context, u *UnderFlags, a Acquisition, run func(*running) error) error {
	// Find the command before anything is held.
	if _, err := proc.Look(u.Command[0]); err != nil {
		return NotStarted(err)
	}
	status, err := openStatus(u.StatusFD)
	if err != nil {
		return err
	}
	defer status.close()
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	defer u.WithParent.Watch(cancel)()
	proc.Reserve() // where that is impossible, nothing is held yet
	// As the first process of a container, azconc is the parent of every orphan in it.
	defer proc.Reap()()
	// From here on no signal ends azconc before the command: while it waits, the frame turns the first one into the end of
	// ctx, and then they are passed on to the command.
	r := &running{Acquisition: a, f: f, ctx: ctx, u: u, status: status, signals: make(chan os.Signal, 8)}
	notifyForwarded(r.signals)
	defer signal.Stop(r.signals)
	return run(r)
}

// notAcquired returns the error with which an acquisition ended, and reports it if another holder has the lease.
func (r *running) notAcquired(err error) error {
	if !errors.Is(err, pessimistic.ErrHeld) {
		return err
	}
	r.status.write("not_acquired", nil)
	return &NotAcquired{Err: err, Code: r.u.NotAcquired}
}

// waiting returns a context that ends with the command's context, or on a signal, until acquired is called. The
// lease outlives the command's context: the child process decides when it ends, and until then no other holder may
// acquire it.
func (r *running) waiting() (ctx context.Context, acquired func()) {
	holding, cancel := context.WithCancelCause(context.WithoutCancel(r.ctx))
	return holding, r.endOnSignal(cancel)
}

// endOnSignal calls cancel when the command's context ends or a signal arrives, until stop is called.
func (r *running) endOnSignal(cancel context.CancelCauseFunc) (stop func()) {
	done, watched := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(watched)
		over := r.ctx.Done()
		for {
			select {
			case <-over:
				over = nil
				cancel(context.Cause(r.ctx))
			case s := <-r.signals:
				// There is no child process yet to pass the signal on to.
				if endsWaiting(s) {
					cancel(&fail.SignalError{Signal: s})
				}
			case <-done:
				return
			}
		}
	}()
	return func() {
		close(done)
		<-watched
	}
}

// hold runs the command while h is held, and releases h unless a process is left.
func (r *running) hold(h Held) error {
	r.status.write("acquired", r.Facts(h))
	r.f.Monitor.Ready(true)
	defer r.f.Monitor.Ready(false)
	err := r.command(h)
	if err == nil && r.Finish != nil {
		err = r.Finish(r.ctx, h)
	}
	if left, ok := errors.AsType[*CommandLeft](err); ok {
		// The lease is kept, so that no other holder acquires it while the process runs.
		r.status.write("kept", map[string]any{"error": left.Error()})
		return err
	}
	// With --hold-at-least the release waits, and a signal or --timeout ends that. The request is sent all the same.
	releasing, sent := r.waiting()
	released := h.Release(releasing)
	sent()
	if released != nil && !errors.Is(released, pessimistic.ErrLost) {
		r.status.write("released", map[string]any{"error": released.Error()})
		r.f.Notef("%v", released)
	} else {
		r.status.write("released", nil)
	}
	return err
}

// command runs the command while h is held.
func (r *running) command(h Held) error {
	f, ctx, u, status := r.f, r.ctx, r.u, r.status
	w := &watch{
		u: u, held: h, status: status, woken: make(chan os.Signal, 1), breaking: r.Breaking,
		stop: make(chan time.Duration), deadlines: make(chan proc.Deadline), finished: make(chan struct{}),
	}
	deadline, changed := w.deadline()
	c := &proc.Command{
		Args: u.Command, Env: monitor.Environ(ctx, slices.Concat(f.Env, r.Env(h))),
		// The command writes to stderr directly: the redactor would hold back a prompt, and is not a terminal.
		Stdin: f.In, Stdout: f.Out, Stderr: f.Redactor.W, Signals: r.signals,
		Job: true, KillAfter: max(u.KillAfter, time.Millisecond), Deadline: deadline, Deadlines: w.deadlines,
		Started: func(pid int) { status.write("started", map[string]any{"pid": pid}) },
		GoOn:    h.Valid,
	}
	if r.Out != nil {
		c.Stdout = r.Out
	}
	if r.inherit != nil {
		c.Inherit = r.inherit(h)
	}
	if in, ok := f.In.(*os.File); ok && f.InTerminal {
		c.Foreground = in
	}
	notifyWoken(w.woken)
	defer signal.Stop(w.woken)
	watched := make(chan struct{})
	go func() {
		defer close(watched)
		w.run(ctx, changed)
	}()
	s, err := c.Run(w.stop)
	close(w.finished)
	<-watched
	if err != nil && !s.Left {
		return NotStarted(err)
	}
	lost := lossOf(h)
	if lost != nil {
		status.lose(lost)
	}
	status.write("exited", map[string]any{"status": s.Code})
	if s.Left {
		return &CommandLeft{Lost: lost, Err: err}
	}
	if lost != nil {
		return &LostRunning{Err: lost, Why: r.lost}
	}
	// The command has received a signal and decides its own status. Any other end is azconc's.
	if cause := context.Cause(ctx); cause != nil {
		if _, ok := errors.AsType[*fail.SignalError](cause); !ok {
			return cause
		}
	}
	if s.Code == 0 {
		return nil
	}
	text := ""
	if s.Signal != "" {
		text = "the command was ended by a signal: " + s.Signal
	}
	return &fail.CommandStatus{Code: s.Code, Text: text}
}
