package lock

import (
	"context"
	"errors"
	"io"
	"os"
	"os/signal"
	"time"

	"github.com/spf13/pflag"

	"github.com/azconc/azconc/cmd/azconc/internal/cli"
	"github.com/azconc/azconc/cmd/azconc/internal/cli/fail"
	"github.com/azconc/azconc/cmd/azconc/internal/cli/lease"
	"github.com/azconc/azconc/cmd/azconc/internal/proc"
	"github.com/azconc/azconc/pessimistic"
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
	set.DurationVarP(&a.Wait, "wait", "w", 0, "wait this long for the lock (default as long as it takes)")
	set.BoolVarP(&a.NoWait, "no-wait", "n", false, "do not wait while another holder has it")
	set.StringVar(&a.duration, "duration", "30s", "how long others must wait if this process dies: 15s to 60s, or infinite")
	set.StringVar(&a.Owner, "owner", "", "name of this holder (default host/pid)")
	set.BoolVar(&a.AllowContent, "allow-content", false, "allow locking a blob that has content, which is refused otherwise")
}

func (a *acquireFlags) parse(set *pflag.FlagSet) error {
	seconds, err := lease.ParseSeconds("--duration", a.duration)
	if err != nil {
		return err
	}
	a.Duration = time.Duration(seconds) * time.Second
	if seconds < 0 {
		a.Duration = pessimistic.Infinite
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
}

func (u *UnderFlags) Add(set *pflag.FlagSet) {
	u.acquireFlags.add(set)
	set.IntVarP(&u.NotAcquired, "conflict-exit-code", "E", exitNotAcquired, "exit code if it is not acquired in time")
	set.DurationVar(&u.KillAfter, "kill-after", defaultKillAfter, "time between TERM and KILL, if the lease lasts that long")
	set.IntVar(&u.StatusFD, "status-fd", 0, "file descriptor `n` to write JSON lines to: acquired or not_acquired, started, lost, exited, released or kept")
	set.DurationVar(&u.AtLeast, "hold-at-least", 0, "hold it at least this long, even if the command ends sooner")
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
	if in.JSON {
		return fail.WithHint(fail.Usagef("-o json and the command's output cannot both go to stdout"), "--status-fd 3 3>status.json writes JSON lines")
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
	return u.acquireFlags.parse(in.Flags)
}

// LockerOptions are those of the lock to run under.
func (u *UnderFlags) LockerOptions(f *cli.Factory) *pessimistic.LockerOptions {
	return &pessimistic.LockerOptions{Owner: u.Owner, Duration: u.Duration, AtLeast: u.AtLeast, AllowContent: u.AllowContent, Hooks: waitingNote(f)}
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

	// Breaking returns how long h keeps a lease that is being broken, 0 if it is over. Nil means that this is unknown: the
	// command is then killed at once.
	Breaking func(ctx context.Context, h Held) (time.Duration, error)

	Out    io.Writer                               // where the command's output goes, if not to ours
	Finish func(ctx context.Context, h Held) error // after its success, before the release
}

// RunUnder acquires, runs the command, stops it if what it holds is lost, and releases when nothing of it is left.
func RunUnder(f *cli.Factory, ctx context.Context, u *UnderFlags, a Acquisition) error {
	// Find the command before anything is held.
	if _, err := proc.Look(u.Command[0]); err != nil {
		return NotStarted(err)
	}
	status, err := openStatus(u.StatusFD)
	if err != nil {
		return err
	}
	defer status.close()
	// As the first process of a container azconc gets the orphans of everything that runs there.
	defer proc.Reap()()
	// From here on no signal ends azconc before the command: while it waits, the frame turns the first one into the end of
	// ctx, and then they are the command's.
	signals := make(chan os.Signal, 8)
	notifyForwarded(signals)
	defer signal.Stop(signals)
	h, err := acquireUntil(f, ctx, a, signals)
	if err != nil {
		if errors.Is(err, pessimistic.ErrHeld) {
			status.write("not_acquired", nil)
			return &NotAcquired{Err: err, Code: u.NotAcquired}
		}
		return err
	}
	status.write("acquired", a.Facts(h))
	err = runHolding(f, ctx, u, a, h, status, signals)
	if err == nil && a.Finish != nil {
		err = a.Finish(context.WithoutCancel(ctx), h)
	}
	if left, ok := errors.AsType[*CommandLeft](err); ok {
		// The lease is kept, so that no other holder acquires it while the process runs.
		status.write("kept", map[string]any{"error": left.Error()})
		return err
	}
	released := h.Release(context.WithoutCancel(ctx))
	if released != nil && !errors.Is(released, pessimistic.ErrLost) {
		status.write("released", map[string]any{"error": released.Error()})
		f.Notef("%v", released)
	} else {
		status.write("released", nil)
	}
	return err
}

// acquireUntil acquires until ctx ends or a signal comes. What is acquired outlives ctx: the command decides when it ends,
// and until then no other holder may acquire it.
func acquireUntil(f *cli.Factory, ctx context.Context, a Acquisition, signals <-chan os.Signal) (Held, error) {
	holding, cancel := context.WithCancelCause(context.WithoutCancel(ctx))
	done, watched := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(watched)
		over := ctx.Done()
		for {
			select {
			case <-over:
				over = nil
				cancel(context.Cause(ctx))
			case s := <-signals:
				// There is no command yet to pass the signal on to.
				if endsWaiting(s) {
					cancel(&fail.SignalError{Signal: s})
				}
			case <-done:
				return
			}
		}
	}()
	h, err := a.Acquire(holding)
	close(done)
	<-watched
	if err == nil && holding.Err() != nil { // it came too late
		_ = h.Release(holding)
		return nil, context.Cause(holding)
	}
	return h, err
}

// runHolding runs the command while h is held.
func runHolding(f *cli.Factory, ctx context.Context, u *UnderFlags, a Acquisition, h Held, status *statusLines, signals <-chan os.Signal) error {
	w := &watch{
		u: u, held: h, status: status, woken: make(chan os.Signal, 1), breaking: a.Breaking,
		stop: make(chan time.Duration), deadlines: make(chan proc.Deadline), finished: make(chan struct{}),
	}
	deadline, changed := w.deadline()
	c := &proc.Command{
		Args: u.Command, Env: append(append([]string{}, f.Env...), a.Env(h)...),
		// The command writes to stderr directly: the redactor would hold back a prompt, and is not a terminal.
		Stdin: f.In, Stdout: f.Out, Stderr: f.Redactor.W, Signals: signals,
		Job: true, KillAfter: max(u.KillAfter, time.Millisecond), Deadline: deadline, Deadlines: w.deadlines,
		Started: func(pid int) { status.write("started", map[string]any{"pid": pid}) },
		GoOn:    h.Valid,
	}
	if a.Out != nil {
		c.Stdout = a.Out
	}
	if a.inherit != nil {
		c.Inherit = a.inherit(h)
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
	if err != nil {
		return NotStarted(err)
	}
	lost := lossOf(h)
	if lost != nil {
		status.lose(lost)
	}
	status.write("exited", map[string]any{"status": s.Code})
	if s.Left {
		return &CommandLeft{Lost: lost}
	}
	if lost != nil {
		return &LostRunning{Err: lost, Why: a.lost}
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
