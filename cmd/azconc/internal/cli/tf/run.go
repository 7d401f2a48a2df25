package tf

import (
	"context"
	"errors"
	"slices"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/storage/azblob/container"
	"github.com/spf13/cobra"

	"github.com/azconc/azconc/cmd/azconc/internal/cli"
	"github.com/azconc/azconc/cmd/azconc/internal/cli/fail"
	"github.com/azconc/azconc/cmd/azconc/internal/cli/flags"
	"github.com/azconc/azconc/cmd/azconc/internal/cli/lock"
	"github.com/azconc/azconc/cmd/azconc/internal/cli/monitor"
	"github.com/azconc/azconc/cmd/azconc/internal/cli/ref"
	"github.com/azconc/azconc/cmd/azconc/internal/proc"
	"github.com/azconc/azconc/cmd/azconc/internal/tfstate"
	"github.com/azconc/azconc/optimistic"
	"github.com/azconc/azconc/pkg/azerr"
)

// runner is a run of azconc tf run.
type runner struct {
	f          *cli.Factory
	state      ref.Blob
	command    []string
	duration   time.Duration
	withParent lock.WithParent
}

func newRunCmd(f *cli.Factory) *cobra.Command {
	cmd := &cobra.Command{
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
own way. What it writes then is stored if nobody has held the lock since; otherwise it leaves errored.tfstate, and the exit code is 76.
TERM and HUP are passed on as INT, because TERM ends the plugins, and not at all after an INT, because a second one
makes the command exit without storing its state. With --end-with-parent, the end of the process that started azconc counts as such
a signal: a runner that cancels a job signals its shell alone. A command that ends without unlocking is unlocked. If azconc is killed, it
is killed, too, on Linux.`,
		Example: `  azconc tf run tfstate/prod.tfstate -- terraform init
  azconc tf run tfstate/prod.tfstate -- terraform apply -lock-timeout=10m
  azconc tf run tfstate/prod.tfstateenv:eu -- tofu plan -out plan.bin`,
	}
	lock.RunsCommand(cmd)
	r := &runner{f: f, duration: 45 * time.Second}
	set := cmd.Flags()
	flags.Within(set, &r.duration, "duration", 15*time.Second, time.Minute, "how long others must wait if this process dies: 15s to 60s")
	r.withParent.Add(set, "send INT to the command when the process that started azconc ends")
	parse := func(arg string) (_ ref.Blob, err error) {
		if r.command, err = lock.CommandIn(cmd); err != nil {
			return r.state, err
		}
		if r.state, err = parseState(arg); err != nil {
			return r.state, err
		}
		return r.state, r.withParent.Check()
	}
	return cli.On(f, cmd, parse, f.Container, func(ctx context.Context, _ ref.Blob, client *container.Client) (cli.Result, error) {
		return nil, r.run(ctx, client)
	})
}

// killAfter is the time between TERM and KILL for a Terraform whose parent, a script, has died: it stops what is under way, and stores
// its state. Half of it passes before its plugins get TERM.
const killAfter = 2 * time.Minute

func (r *runner) run(ctx context.Context, client *container.Client) error {
	if _, err := proc.Look(r.command[0]); err != nil {
		return lock.NotStarted(err)
	}
	if err := checkDir(".", r.command, r.f.Env.Get, r.state); err != nil {
		return err
	}
	// A mistake in the account or in the container's name is reported here: clients show the status of an answer, and not its text.
	if _, err := tfstate.Look(ctx, client.NewBlobClient(r.state.Blob)); err != nil && (azerr.Absent(err) != "" || !errors.Is(err, optimistic.ErrNotFound)) {
		return err
	}
	proc.Reserve()
	signals, stop := catchSignals()
	defer stop()
	tell := func(err error) {
		r.f.Notef("%s: %v; the command is asked to stop", r.state, err)
		signals.interrupt()
	}
	defer r.withParent.Watch(tell)()
	session := tfstate.New(context.WithoutCancel(ctx), client, r.state.Blob, tfstate.Options{
		Name: r.state.String(), Duration: r.duration, Note: r.f.Notef,
		Lost: tell,
	})
	server, err := tfstate.Serve(session)
	if err != nil {
		return err
	}
	status, err := r.runCommand(ctx, server, signals)
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
		result = fail.WithHint(&lock.LostRunning{Err: lost}, "if the command has left errored.tfstate, import what it has created into the stored state: "+
			"terraform state push could erase what another run has done since")
	}
	if id != "" {
		r.f.Notef("%s: the command has ended without unlocking; its lock, ID %s, is released", r.state, id)
	}
	if server.Requests() == 0 && status.Code == 0 && !direct(r.command) {
		r.f.Notef("%s: the command has not asked for the state: is there a backend \"http\" block where it works?", r.state)
	}
	return result
}

// runCommand runs the command with the server's address.
func (r *runner) runCommand(ctx context.Context, server *tfstate.Server, signals *signals) (proc.Status, error) {
	c := lock.Job(r.f, r.command, monitor.Environ(ctx, slices.Concat(r.f.Env, server.Environ())))
	c.Signals, c.KillAfter = signals.out, killAfter
	stop := context.AfterFunc(ctx, func() {
		if !fail.Signalled(ctx) { // signals has those
			signals.interrupt()
		}
	})
	defer stop()
	return c.Run(nil)
}
