package group

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"github.com/azconc/azconc/cmd/azconc/internal/cli"
	"github.com/azconc/azconc/cmd/azconc/internal/cli/fail"
	"github.com/azconc/azconc/cmd/azconc/internal/cli/flags"
	"github.com/azconc/azconc/cmd/azconc/internal/cli/lease"
	"github.com/azconc/azconc/cmd/azconc/internal/cli/lock"
	"github.com/azconc/azconc/cmd/azconc/internal/cli/ref"
	"github.com/azconc/azconc/cmd/azconc/internal/proc"
	"github.com/azconc/azconc/pessimistic"
	lib "github.com/azconc/azconc/pessimistic/group"
)

// runner is a run of azconc group run.
type runner struct {
	lock.UnderFlags
	f     *cli.Factory
	parts int
	on    ref.Blob
	k     *pessimistic.Locker
}

func newRunCmd(f *cli.Factory) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "run <container/name> --parts <n> [flags] -- <command> [<arg>...]",
		Short: "Run a command for each part of a job that falls to this member",
		Long: `Take part in a job of n parts, such as tenants, prefixes or queues, and run the command once for each part that this member has, at
the same time. All members, on whatever machines, run azconc with the same name and the same --parts: each part has one of them at a
time, and all have equally many, give or take one. When a member comes, the others each give it some; when one goes or dies, the others
take its parts. Nothing is taken from a member that lives.

The command finds the number of its part, 0 to n-1, in AZCONC_PART and n in AZCONC_PARTS, and in AZCONC_LOCK_FENCE a number that is larger
than that of every earlier holder of the part. It goes on for as long as it likes: when it ends, it is run again, after a pause that
grows up to a minute while it fails. Its stdin is empty.

When its part is to go to another member, everything that the command has started gets TERM and, after --drain, KILL; then the other
begins. On TERM, INT or HUP azconc does so with all its parts, and exits with 0; a second signal ends it at once. If the lease of a
part is lost, its command is stopped before another member can begin. A member that dies keeps its parts for up to --duration.

A part is the lock "<container/name>/<number>", and a member holds the lock "<container/name>/member/<id>".
Requests: at rest, a list every 5 s, and a renewal of each lease every third of --duration.`,
		Example: `  azconc group run jobs/ingest --parts 16 -- ./worker
  azconc group run jobs/orders --parts 3 -- sh -c 'exec azconc queue consume "orders-$AZCONC_PART" --exec ./handle'`,
	}
	r := &runner{f: f}
	set := cmd.Flags()
	r.KillAfter = 30 * time.Second
	flags.Between(set, &r.parts, "parts", 256, "how many parts there are, 1 to 256; the same for all members")
	flags.Required(set, "parts", "")
	lease.AddDuration(set, &r.Locker.Duration, "1m", "how long the parts of a member that dies stay with it: 15s to 60s")
	flags.Duration(set, &r.KillAfter, "drain", true, "time between TERM and KILL")
	set.StringVar(&r.Locker.Owner, "owner", "", "name of this member (default host/pid)")
	flags.Metrics(set)
	lock.RunsCommand(cmd)
	parse := func(arg string) (on ref.Blob, err error) {
		if r.Command, err = lock.CommandIn(cmd); err != nil {
			return on, err
		}
		r.on, err = lock.ParseLock(arg)
		return r.on, err
	}
	open := func(on ref.Blob) (_ *lib.Group, err error) {
		r.Locker.Hooks = f.Monitor.Hooks()
		if r.k, err = lock.Locker(f, on, &r.Locker); err != nil {
			return nil, err
		}
		g, err := lib.New(r.k, on.Blob, r.parts, &lib.Options{Drain: r.KillAfter + killed})
		if err != nil {
			return nil, &fail.UsageError{Err: err}
		}
		return g, nil
	}
	return cli.On(f, cmd, parse, open, func(ctx context.Context, _ ref.Blob, g *lib.Group) (cli.Result, error) { return nil, r.run(ctx, g) })
}

// killed is longer than it takes to end a command after its KILL. The lease of a part is never released before that.
const killed = time.Minute

// errLeaving ends the commands of a member that leaves. It is no signal, which a command would be expected to have received itself.
var errLeaving = errors.New("this member leaves the group")

func (r *runner) run(ctx context.Context, g *lib.Group) error {
	if _, err := proc.Look(r.Command[0]); err != nil { // before anything is held
		return lock.NotStarted(err)
	}
	proc.Reserve()
	taking, leave := context.WithCancelCause(context.WithoutCancel(ctx))
	defer leave(nil)
	defer context.AfterFunc(ctx, func() {
		r.f.Monitor.Drain()
		leave(errLeaving)
	})()
	r.f.Monitor.Ready(true)
	err := g.Run(taking, r.work)
	switch {
	case errors.Is(err, lib.ErrMixed):
		return fail.Judged(fail.ExitConflict, "mismatch", err)
	case !errors.Is(err, errLeaving):
		return err
	case fail.Signalled(ctx):
		return nil
	}
	return context.Cause(ctx)
}

// work runs the command for a part.
func (r *runner) work(ctx context.Context, part int, h *pessimistic.Hold) error {
	err := lock.RunHeld(ctx, r.f, &r.UnderFlags, lock.Acquisition{
		Locker: r.k, Name: fmt.Sprintf("%s/%d", r.on, part),
		Env: func() []string {
			return []string{fmt.Sprint("AZCONC_PART=", part), fmt.Sprint("AZCONC_PARTS=", r.parts)}
		},
	}, h)
	if _, left := errors.AsType[*lock.CommandLeft](err); left {
		return lib.Keep(err)
	}
	if !r.f.Quiet && err != nil && !errors.Is(err, errLeaving) {
		switch status, ended := errors.AsType[*fail.CommandStatus](err); {
		case !ended:
			r.f.Notef("part %d of %s: %v", part, r.on, err)
		case status.Text != "":
			r.f.Notef("part %d of %s: %s; it is run again after a pause", part, r.on, status.Text)
		default:
			r.f.Notef("part %d of %s: the command exited with %d; it is run again after a pause", part, r.on, status.Code)
		}
	}
	return err
}
