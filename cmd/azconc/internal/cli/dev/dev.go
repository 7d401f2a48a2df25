// Package dev has the verbs of azconc dev, which run an emulator: the service in memory, or Azurite.
package dev

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"os"
	"os/signal"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/spf13/cobra"

	"github.com/azconc/azconc/cmd/azconc/internal/cli"
	"github.com/azconc/azconc/cmd/azconc/internal/cli/engine"
	"github.com/azconc/azconc/cmd/azconc/internal/cli/fail"
	"github.com/azconc/azconc/cmd/azconc/internal/cli/lock"
	"github.com/azconc/azconc/cmd/azconc/internal/cli/monitor"
	"github.com/azconc/azconc/cmd/azconc/internal/proc"
)

const connectionVariable = "AZURE_STORAGE_CONNECTION_STRING"

func NewCmd(f *cli.Factory) *cobra.Command {
	return cli.NewGroupCmd("dev", "An emulator on this machine, for development and tests", newRunCmd(f), newUpCmd(f))
}

func newUpCmd(f *cli.Factory) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "up",
		Short: "Run an emulator until interrupted",
		Long: `Run an emulator until interrupted, and print the line that configures a shell to use it.

It is a service in memory with blobs, queues, tables and files. It verifies shared keys and SAS, starts at once, and keeps
nothing: its data is gone when it ends. --engine azurite runs Microsoft's Azurite instead, which needs Node.js, has no files, and
keeps its data if --location is given; --location alone means it, too.

It listens on 127.0.0.1 only, on free ports unless --default-ports is given. When interrupted, it ends with exit code 0.

` + engine.FaultHelp(),
		Example: `  azconc dev up
  azconc dev up --default-ports
  azconc dev up --faults lose-answer=5%,throttle=2%
  azconc dev up --engine azurite --location ./azurite-data`,
	}
	set, e := cmd.Flags(), engine.Options{}
	e.Flag(set)
	e.FaultFlags(set)
	set.StringVar(&e.Location, "location", "", "`directory` for the data of Azurite, which are kept")
	set.BoolVar(&e.DefaultPorts, "default-ports", false, "listen on 10000, 10001 and 10002, where UseDevelopmentStorage=true looks, and on 10004 for files")
	parse := func() (engine.Options, error) {
		if e.Location != "" && !set.Changed("engine") {
			e.Engine = engine.Azurite // only it keeps data
		}
		return e, e.Check()
	}
	return cli.OnAccount(f, cmd, parse, func(ctx context.Context, e engine.Options) (cli.Result, error) { return nil, up(ctx, f, e) })
}

type upResult struct {
	Outcome          string `json:"outcome"`
	ConnectionString string `json:"connection_string"`
	BlobEndpoint     string `json:"blob_endpoint"`
	QueueEndpoint    string `json:"queue_endpoint"`
	TableEndpoint    string `json:"table_endpoint"`
	FileEndpoint     string `json:"file_endpoint,omitempty"`

	Engine string `json:"engine"`
}

func up(ctx context.Context, f *cli.Factory, e engine.Options) (err error) {
	server, err := engine.Start(ctx, f, e)
	if err != nil {
		return err
	}
	defer func() { err = cmp.Or(err, server.Stop()) }()
	// Nothing is redacted: the connection string is the result, and the keys of an emulator are no secrets.
	if err := f.PrintAsIs(upResult{
		Outcome: "running", ConnectionString: server.ConnectionString(), Engine: e.Engine,
		BlobEndpoint: server.BlobURL, QueueEndpoint: server.QueueURL, TableEndpoint: server.TableURL, FileEndpoint: server.FileURL,
	}); err != nil {
		return err
	}
	note := server.Name + " is up until interrupted"
	if e.Engine == engine.Memory {
		note += "; it keeps nothing"
	}
	if len(e.Faults) > 0 {
		note += ", and fails as --faults says"
	}
	f.Notef("%s", note)
	select {
	case <-server.Done():
		return nil // Stop says why
	case <-ctx.Done():
		if fail.Signalled(ctx) {
			return nil
		}
		return context.Cause(ctx)
	}
}

func (r upResult) Text(w io.Writer) {
	fmt.Fprintf(w, "export %s='%s'\n", connectionVariable, r.ConnectionString)
}

func newRunCmd(f *cli.Factory) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "run -- <command> [<arg>...]",
		Short: "Run a command with its own emulator",
		Long: `Run a command with its own emulator, which starts empty and whose data is gone afterwards.

The emulators are those of azconc dev up. The command gets the connection in AZURE_STORAGE_CONNECTION_STRING; other variables that
name a storage account are removed from its environment. Signals are passed on to it, and its status becomes azconc's: see azconc
help exit-codes.

--faults makes the service in memory fail, so that you see what your command does then; azconc dev up --help lists the faults.`,
		Example: `  azconc dev run -- go test ./...
  azconc dev run -- sh -c 'azconc container create jobs && azconc container list'
  azconc dev run --faults lose-answer=10%@writes -- go test ./...
  azconc dev run --engine azurite -- go test ./...`,
	}
	lock.RunsCommand(cmd)
	set, e := cmd.Flags(), engine.Options{}
	e.Flag(set)
	e.FaultFlags(set)
	set.SetInterspersed(false)
	parse := func() (engine.Options, error) {
		if set.NArg() == 0 {
			return e, fail.Usagef("<command> is missing")
		}
		return e, e.Check()
	}
	return cli.OnAccount(f, cmd, parse, func(ctx context.Context, e engine.Options) (cli.Result, error) {
		return nil, run(ctx, f, e, set.Args())
	})
}

// commandGrace is the time between TERM and KILL for the command when it timed out or its emulator has ended.
const commandGrace = 10 * time.Second

func run(ctx context.Context, f *cli.Factory, e engine.Options, command []string) (err error) {
	// Find the command before the emulator is started, which may take a while.
	if _, err := proc.Look(command[0]); err != nil {
		return lock.NotStarted(err)
	}
	// The frame has caught the signal that ends ctx. From here on no signal ends azconc before the command, which gets them all.
	signals := make(chan os.Signal, 8)
	proc.Notify(signals, os.Interrupt, syscall.SIGTERM)
	defer signal.Stop(signals)
	server, err := engine.Start(ctx, f, e)
	if err != nil {
		return err
	}
	defer func() { err = cmp.Or(server.Stop(), err) }()
	job := lock.Job(f, command, append(monitor.Environ(ctx, withoutAccount(f.Env)), connectionVariable+"="+server.ConnectionString()))
	job.Signals, job.KillAfter = signals, commandGrace
	stop := make(chan time.Duration)
	finish := lock.Until(func(finished <-chan struct{}) {
		ended := ctx.Done()
		for {
			select {
			case <-ended:
				if ended = nil; fail.Signalled(ctx) {
					continue
				}
			case <-server.Done():
			case <-finished:
				return
			}
			select {
			case stop <- commandGrace:
			case <-finished:
			}
			return
		}
	})
	status, err := job.Run(stop)
	finish()
	if err != nil {
		return lock.NotStarted(err)
	}
	return lock.Ended(ctx, status)
}

// withoutAccount returns env without the variables that could name another account than the connection string.
func withoutAccount(env cli.Env) []string {
	return slices.DeleteFunc(slices.Clone(env), func(v string) bool { return strings.HasPrefix(v, "AZURE_STORAGE_") })
}
