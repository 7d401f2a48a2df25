package dev

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"os/signal"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/azconc/azconc/cmd/azconc/internal/cli"
	"github.com/azconc/azconc/cmd/azconc/internal/cli/engine"
	"github.com/azconc/azconc/cmd/azconc/internal/cli/fail"
)

type runOptions struct {
	Engine  engine.Options
	Command []string
}

func runVerb() cli.Verb[runOptions] {
	return cli.Verb[runOptions]{
		Use:   "run -- <command> [<arg>...]",
		Short: "Run a command with its own emulator",
		Long: `Run a command with its own emulator, which starts empty and whose data is gone afterwards.

It is a service in memory with blobs, queues, tables and files, which starts at once and keeps nothing. --engine azurite runs
Microsoft's Azurite instead, which needs Node.js and has no files.

The command gets it in AZURE_STORAGE_CONNECTION_STRING; other variables that name a storage account are removed from its
environment. Signals are passed on to it. azconc exits with its status: 128+n if a signal killed it, 126 or 127 if it could
not be started.

--faults makes the service in memory fail, so that you see what your command does then; azconc dev up --help lists the faults.`,
		Example: `  azconc dev run -- go test ./...
  azconc dev run -- sh -c 'azconc container create jobs && azconc container list'
  azconc dev run --faults lose-answer=10%@writes -- go test ./...
  azconc dev run --engine azurite -- go test ./...`,
		Args: func(_ *cobra.Command, args []string) error {
			if len(args) == 0 {
				return fail.Usagef("<command> is missing")
			}
			return nil
		},
		Flags: func(opts *runOptions, set *pflag.FlagSet) {
			opts.Engine.Flag(set)
			opts.Engine.FaultFlags(set)
			set.SetInterspersed(false)
		},
		Parse: func(opts *runOptions, in cli.Input) error {
			if in.Form != "" {
				return fail.Usagef("%s and the command's output cannot both go to stdout", in.Form)
			}
			opts.Command = in.Args
			return opts.Engine.Check()
		},
		Run: runRun,
	}
}

// commandGrace is the time between TERM and KILL for the command when it timed out or its emulator has ended.
const commandGrace = 10 * time.Second

func runRun(ctx context.Context, f *cli.Factory, opts *runOptions) (err error) {
	// Find the command before the emulator is started, which may take a while.
	path, err := exec.LookPath(opts.Command[0])
	if err != nil {
		return commandNotStarted(err)
	}
	server, err := engine.Start(ctx, f, opts.Engine)
	if err != nil {
		return err
	}
	defer func() {
		if stopped := server.Stop(); stopped != nil {
			err = stopped
		}
	}()
	cmd := exec.Command(path, opts.Command[1:]...)
	cmd.Args[0] = opts.Command[0]
	// The command writes to stderr directly: the redactor would hold back a prompt, and is not a terminal.
	cmd.Stdin, cmd.Stdout, cmd.Stderr = f.In, f.Out, f.Redactor.W
	cmd.Env = append(withoutAccount(f.Env), connectionVariable+"="+server.ConnectionString())
	cmd.WaitDelay = commandGrace
	if err := cmd.Start(); err != nil {
		return commandNotStarted(err)
	}
	return accompany(f, ctx, cmd, server)
}

// accompany waits for the command's end and passes signals on until then.
func accompany(f *cli.Factory, ctx context.Context, cmd *exec.Cmd, server engine.Server) error {
	done := make(chan error, 1)
	go func() { done <- cmd.Wait() }()
	signals := make(chan os.Signal, 1)
	defer signal.Stop(signals)
	ended, died := ctx.Done(), server.Done()
	var kill <-chan time.Time
	var why error
	stop := func() {
		_ = cmd.Process.Signal(syscall.SIGTERM)
		if kill == nil {
			kill = time.After(commandGrace)
		}
	}
	for {
		select {
		case err := <-done:
			if why != nil {
				return why
			}
			return commandEnded(err)
		case <-ended:
			ended = nil
			s, ok := errors.AsType[*fail.SignalError](context.Cause(ctx))
			if !ok {
				why = context.Cause(ctx)
				stop()
				continue
			}
			// The frame has caught this signal and would let the next one end azconc before the command.
			signal.Notify(signals, os.Interrupt, syscall.SIGTERM)
			pass(f, cmd, s.Signal)
		case s := <-signals:
			pass(f, cmd, s)
		case <-died:
			died = nil
			stop()
		case <-kill:
			_ = cmd.Process.Kill()
		}
	}
}

// pass sends a signal on to the command. It has already received an interrupt from the terminal, as a member of the
// foreground group.
func pass(f *cli.Factory, cmd *exec.Cmd, s os.Signal) {
	if s == os.Interrupt && f.InTerminal {
		return
	}
	_ = cmd.Process.Signal(s)
}

// withoutAccount returns env without the variables that could name another account than the connection string.
func withoutAccount(env cli.Env) []string {
	return slices.DeleteFunc(slices.Clone(env), func(v string) bool { return strings.HasPrefix(v, "AZURE_STORAGE_") })
}

func commandNotStarted(err error) error {
	code := 126
	if errors.Is(err, exec.ErrNotFound) || errors.Is(err, fs.ErrNotExist) {
		code = 127
	}
	return &fail.CommandStatus{Code: code, Text: err.Error()}
}

func commandEnded(err error) error {
	exit, ok := errors.AsType[*exec.ExitError](err)
	switch {
	case err == nil:
		return nil
	case !ok:
		return fmt.Errorf("wait for the command: %w", err)
	}
	if status, ok := exit.Sys().(syscall.WaitStatus); ok && status.Signaled() {
		return &fail.CommandStatus{Code: 128 + int(status.Signal()), Text: "the command was ended by a signal: " + status.Signal().String()}
	}
	return &fail.CommandStatus{Code: exit.ExitCode()}
}
