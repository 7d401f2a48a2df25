package tf

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/azconc/azconc/cmd/azconc/internal/cli"
	"github.com/azconc/azconc/cmd/azconc/internal/cli/fail"
	"github.com/azconc/azconc/cmd/azconc/internal/cli/lease"
	"github.com/azconc/azconc/cmd/azconc/internal/cli/lock"
	"github.com/azconc/azconc/cmd/azconc/internal/cli/ref"
	"github.com/azconc/azconc/cmd/azconc/internal/proc"
	"github.com/azconc/azconc/cmd/azconc/internal/tfdir"
	"github.com/azconc/azconc/cmd/azconc/internal/tfstate"
	"github.com/azconc/azconc/optimistic"
	"github.com/azconc/azconc/pkg/azerr"
)

type runOptions struct {
	State      ref.Blob
	Command    []string
	Duration   time.Duration
	NoSnapshot bool
	WithParent lock.WithParent

	duration string
}

func runVerb() cli.Verb[runOptions] {
	return cli.Verb[runOptions]{
		Use:   "run <container/state> [flags] -- <command> [<arg>...]",
		Short: "Run Terraform or OpenTofu on a state whose lock ends with the run",
		Long: `Run Terraform or OpenTofu on a state in a blob. Its lock ends by itself within --duration if the run dies, so nobody has to unlock
it by hand.

The configuration needs an empty backend "http" block, such as a file backend.tf.json with {"terraform":{"backend":{"http":{}}}}.
azconc serves that backend on the loopback interface while the command runs, and gives address and password to the command
alone, in TF_HTTP_*. init needs azconc tf run, too. The state is the blob that the azurerm backend uses, and it and its lock are stored in that backend's form, so a team can
go back and forth. azconc refuses to start where the command would not use the blob, and says what to change.

A write is stored only under the lock, and only over the version that the command has read. Before the first write of each lock,
the version before is kept in a snapshot, unless the account keeps versions.

If the lock cannot be renewed in time, or is released or broken by another client, the command gets INT, once, and stops in its
own way. What it writes then is stored if nobody has held the lock since; otherwise it leaves errored.tfstate, which azconc tf push
stores if no other run has written, and the exit code is 76. TERM and HUP are passed on as INT, because TERM ends the plugins, and not at all after an INT, because a second one
makes the command exit without storing its state. With --end-with-parent, the end of the process that started azconc counts as such
a signal: a runner that cancels a job signals its shell alone. A command that ends without unlocking is unlocked. If azconc is killed, it
is killed, too, on Linux.`,
		Example: `  azconc tf run tfstate/prod.tfstate -- terraform init
  azconc tf run tfstate/prod.tfstate -- terraform apply -lock-timeout=10m
  azconc tf run tfstate/prod.tfstateenv:eu -- tofu plan -out plan.bin`,
		Args: cobra.ArbitraryArgs,
		Flags: func(opts *runOptions, set *pflag.FlagSet) {
			set.StringVar(&opts.duration, "duration", "45s", "how long others must wait if this process dies: 15s to 60s")
			opts.WithParent.Add(set, "send INT to the command when the process that started azconc ends")
			set.BoolVar(&opts.NoSnapshot, "no-snapshot", false, "do not keep the version before")
		},
		Parse: func(opts *runOptions, in cli.Input) (err error) {
			if opts.Command, err = lock.CommandIn(in, "<container/state>"); err != nil {
				return err
			}
			if opts.State, err = parseState(in.Args[0]); err != nil {
				return err
			}
			if opts.duration == "infinite" {
				return fail.WithHint(fail.Usagef("--duration infinite is a lock that outlives its run"), "the azurerm backend has such locks")
			}
			if err := opts.WithParent.Check(); err != nil {
				return err
			}
			opts.Duration, err = lease.ParseDuration("--duration", opts.duration)
			return err
		},
		Run: runRun,
	}
}

// killAfter is the time between TERM and KILL for a Terraform whose parent, a script, has died: it stops what is under way, and stores
// its state. Half of it passes before its plugins get TERM.
const killAfter = 2 * time.Minute

func runRun(ctx context.Context, f *cli.Factory, opts *runOptions) error {
	if _, err := proc.Look(opts.Command[0]); err != nil {
		return lock.NotStarted(err)
	}
	if err := tfdir.Check(".", opts.Command, f.Env.Get, opts.State.Container, opts.State.Blob); err != nil {
		if r, ok := errors.AsType[*tfdir.Refusal](err); ok {
			return fail.WithHint(fail.Usagef("%s", r.Text), r.Hint)
		}
		return err
	}
	client, err := f.Container(opts.State)
	if err != nil {
		return err
	}
	// A mistake in the account or in the container's name is reported here: clients show the status of an answer, and not its text.
	if _, err := tfstate.Look(ctx, client.NewBlobClient(opts.State.Blob)); err != nil && (azerr.Absent(err) != "" || !errors.Is(err, optimistic.ErrNotFound)) {
		return err
	}
	proc.Reserve()
	signals, stop := catchSignals()
	defer stop()
	tell := func(err error) {
		f.Notef("%s: %v; the command is asked to stop", opts.State, err)
		signals.interrupt()
	}
	defer opts.WithParent.Watch(tell)()
	session := tfstate.New(context.WithoutCancel(ctx), client, opts.State.Blob, tfstate.Options{
		Name: opts.State.String(), Duration: opts.Duration, NoSnapshots: opts.NoSnapshot, Note: f.Notef,
		Lost: tell,
	})
	server, err := tfstate.Serve(session)
	if err != nil {
		return err
	}
	began := time.Now()
	status, err := command(ctx, f, opts, server, signals)
	if status.Left {
		server.Abandon()
		return &lock.CommandLeft{Err: err}
	}
	id, lost := server.Close()
	if err != nil {
		return lock.NotStarted(err)
	}
	result := lock.Ended(ctx, status)
	if lost != nil {
		result = &lostError{lost}
	}
	if read, unstored := session.Unstored(); unstored {
		if left, err := keepRead(tfdir.Dir(".", opts.Command), began, read); err != nil {
			f.Notef("%s: what the run had read is not kept: %v", opts.State, err)
		} else if left != "" {
			push := "azconc tf push " + opts.State.String()
			if left != errored {
				push += " " + left
			}
			result = fail.WithHint(&unstoredError{cause: lost, code: max(1, status.Code), file: left},
				push+" stores it if the state is still the one that the run had read; terraform state push would erase what another run has done since")
		}
	}
	if id != "" {
		f.Notef("%s: the command has ended without unlocking; its lock, ID %s, is released", opts.State, id)
	}
	if server.Requests() == 0 && status.Code == 0 && !tfdir.Direct(opts.Command) {
		f.Notef("%s: the command has not asked for the state: is there a backend \"http\" block where it works?", opts.State)
	}
	return result
}

// command runs the command with the server's address.
func command(ctx context.Context, f *cli.Factory, opts *runOptions, server *tfstate.Server, signals *signals) (proc.Status, error) {
	c := lock.Job(f, opts.Command, slices.Concat(f.Env, server.Environ()))
	c.Signals, c.KillAfter = signals.out, killAfter
	stop := context.AfterFunc(ctx, func() {
		if _, ok := errors.AsType[*fail.SignalError](context.Cause(ctx)); !ok { // signals has those
			signals.interrupt()
		}
	})
	defer stop()
	return c.Run(nil)
}

// lostError reports that the lock was lost while the command ran.
type lostError struct{ err error }

func (e *lostError) Error() string {
	return fmt.Sprintf("the lock was lost while the command ran: %v", e.err)
}
func (e *lostError) Unwrap() error { return e.err }
func (*lostError) Verdict() fail.Verdict {
	return fail.Verdict{Code: lock.ExitLost, Outcome: "lost"}
}
