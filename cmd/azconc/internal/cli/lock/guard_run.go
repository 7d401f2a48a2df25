package lock

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"slices"
	"sync"
	"time"

	"github.com/azconc/azconc/cmd/azconc/internal/cli"
	"github.com/azconc/azconc/cmd/azconc/internal/cli/fail"
	"github.com/azconc/azconc/cmd/azconc/internal/cli/monitor"
	"github.com/azconc/azconc/cmd/azconc/internal/proc"
	"github.com/azconc/azconc/pessimistic"
	"github.com/azconc/azconc/pkg/lease"
)

const (
	exitNotAcquired  = 75
	releaseMargin    = 500 * time.Millisecond // between the last process's end and the lease's
	defaultKillAfter = 10 * time.Second
)

// Acquisition says how a lock is acquired to run a command under it.
type Acquisition struct {
	Locker  *pessimistic.Locker // of the lock
	What    string              // for people: "jobs/nightly"
	Name    string              // AZCONC_LOCK_NAME. Defaults to What
	Acquire func(ctx context.Context) (*pessimistic.Hold, error)

	// What is nil is left out.
	Env     func() []string                 // what else the command finds in its environment, once the lock is acquired
	Out     io.Writer                       // where the command's output goes, if not to ours
	Finish  func(ctx context.Context) error // after the command's success, before the release; ctx may have ended
	Release func(ctx context.Context) error // in place of Hold.Release

	apart bool // see RunHeld
}

// RunUnder acquires, runs the command, stops it if the lock is lost, and releases it when nothing of the command is left.
func RunUnder(ctx context.Context, f *cli.Factory, u *UnderFlags, a Acquisition) error {
	return begin(ctx, f, u, a, func(r *running) error {
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

// RunHeld runs one of several commands, which is no part of azconc's job and has no stdin, under h, which the caller releases. When ctx
// ends, other than by a signal, the command gets TERM and, after u.KillAfter, KILL. The error is a *CommandLeft if something of it is left.
func RunHeld(ctx context.Context, f *cli.Factory, u *UnderFlags, a Acquisition, h *pessimistic.Hold) error {
	a.apart = true
	return (&running{Acquisition: a, f: f, ctx: ctx, u: u, status: &statusLines{}}).command(h)
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
func begin(ctx context.Context, f *cli.Factory, u *UnderFlags, a Acquisition, run func(*running) error) error {
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
	return fail.Judged(r.u.NotAcquired, "not_acquired", err)
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
	return Until(func(stopped <-chan struct{}) {
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
			case <-stopped:
				return
			}
		}
	})
}

// Until runs watch, beside the caller, until stop is called, which waits for its end.
func Until(watch func(stopped <-chan struct{})) (stop func()) {
	stopped := make(chan struct{})
	var watching sync.WaitGroup
	watching.Go(func() { watch(stopped) })
	return func() {
		close(stopped)
		watching.Wait()
	}
}

// hold runs the command while h is held, and releases h unless a process is left.
func (r *running) hold(h *pessimistic.Hold) error {
	if r.Name == "" {
		r.Name = r.What
	}
	r.status.isLost.Store(false) // of an earlier term
	r.status.write("acquired", map[string]any{
		"lock": r.Name, "owner": h.Owner(), "fence": int64(h.Fence()), "etag": string(h.ETag()),
		"previous": string(h.Previous().Ended), "waited_ms": h.Stats().Waited.Milliseconds(), "requests": h.Stats().Requests,
	})
	r.f.Monitor.Ready(true)
	defer r.f.Monitor.Ready(false)
	err := r.command(h)
	if err == nil && r.Finish != nil {
		err = r.Finish(r.ctx)
	}
	if left, ok := errors.AsType[*CommandLeft](err); ok {
		// The lease is kept, so that no other holder acquires it while the process runs.
		r.status.write("kept", map[string]any{"error": left.Error()})
		return err
	}
	// With --hold-at-least the release waits, and a signal or --timeout ends that. The request is sent all the same.
	releasing, sent := r.waiting()
	release := h.Release
	if r.Release != nil {
		release = r.Release
	}
	released := release(releasing)
	sent()
	switch lost, gone := errors.AsType[*pessimistic.LostError](released); {
	case gone && !r.status.isLost.Load(): // since the last renewal
		r.status.lose(lost)
		if err == nil {
			return fail.Judged(ExitLost, "lost", fmt.Errorf("the command has ended, and its lock was lost before that: %w", lost))
		}
		r.f.Notef("%v", lost)
	case released != nil && !gone:
		r.status.write("released", map[string]any{"error": released.Error()})
		r.f.Notef("%v", released)
	default:
		r.status.write("released", nil)
	}
	return err
}

// command runs the command while h is held.
func (r *running) command(h *pessimistic.Hold) error {
	w := &watch{
		killAfter: r.u.KillAfter, held: h, status: r.status, woken: make(chan os.Signal, 1),
		stop: make(chan time.Duration), deadlines: make(chan proc.Deadline),
		// Breaking the lock again returns the time, and changes nothing.
		breaking: func(ctx context.Context) (time.Duration, error) {
			b, err := r.Locker.Break(ctx, h.Name(), &pessimistic.BreakOptions{Conditions: lease.Conditions{IfMatch: h.ETag()}})
			return b.After, err
		},
	}
	deadline, changed := w.deadline()
	env := []string{"AZCONC_LOCK_NAME=" + r.Name, "AZCONC_LOCK_FENCE=" + h.Fence().String(), "AZCONC_LEASE_ID=" + h.ID()}
	if r.Env != nil {
		env = append(env, r.Env()...)
	}
	c := Job(r.f, r.u.Command, monitor.Environ(r.ctx, slices.Concat(r.f.Env, env)))
	c.Signals, c.KillAfter, c.Deadline, c.Deadlines = r.signals, max(r.u.KillAfter, time.Millisecond), deadline, w.deadlines
	c.Started = func(pid int) { r.status.write("started", map[string]any{"pid": pid}) }
	c.GoOn = h.Valid
	if r.apart {
		c.Job, c.Foreground, c.Stdin = false, nil, nil
	}
	if r.Out != nil {
		c.Stdout = r.Out
	}
	notifyWoken(w.woken)
	defer signal.Stop(w.woken)
	finish := Until(func(finished <-chan struct{}) {
		w.finished = finished
		w.run(r.ctx, changed)
	})
	s, err := c.Run(w.stop)
	finish()
	if err != nil && !s.Left {
		return NotStarted(err)
	}
	lost := lossOf(h)
	if lost != nil {
		r.status.lose(lost)
	}
	r.status.write("exited", map[string]any{"status": s.Code})
	switch {
	case s.Left:
		return &CommandLeft{Lost: lost, Err: err}
	case lost != nil:
		return &LostRunning{lost}
	}
	return Ended(r.ctx, s)
}

// Job returns a command that belongs to azconc's job and has its streams.
func Job(f *cli.Factory, args, env []string) *proc.Command {
	// The command writes to stderr directly: the redactor would hold back a prompt, and is not a terminal.
	c := &proc.Command{Args: args, Env: env, Stdin: f.In, Stdout: f.Out, Stderr: f.Redactor.W, Job: true}
	if in, ok := f.In.(*os.File); ok && f.InTerminal {
		c.Foreground = in
	}
	return c
}
