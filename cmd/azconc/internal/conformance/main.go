// Command conformance runs the suite of package conformance against a real storage account, and prints a table of expected and actual
// results. scripts/conformance runs it. azconc demo plays its scenes on an account, too.
//
// It uses the account that azconc would use. It creates everything in containers, tables, queues and shares of its own,
// whose names begin with "azconc-conformance-" (tables: "azconcconformance"), and removes them at the end, even after a
// failure or an interrupt.
//
// Exit status: 0 everything as expected; 1 a difference, or something could not be removed; 2 usage; 130 interrupted.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/signal"
	"regexp"
	"syscall"

	"github.com/azconc/azconc/cmd/azconc/internal/azaccount"
)

const (
	exitOK          = 0
	exitDifferent   = 1
	exitUsage       = 2
	exitInterrupted = 130
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	context.AfterFunc(ctx, stop) // a second interrupt ends the process at once
	p := program{getenv: os.Getenv, stdout: os.Stdout, stderr: os.Stderr, transport: http.DefaultTransport.(*http.Transport).Clone()}
	os.Exit(p.run(ctx, os.Args[1:]))
}

// program is the environment of a run, which tests replace.
type program struct {
	getenv         func(string) string
	stdout, stderr io.Writer
	transport      *http.Transport
}

// run returns the exit status.
func (p program) run(ctx context.Context, args []string) int {
	flags := flag.NewFlagSet("conformance", flag.ContinueOnError)
	flags.SetOutput(p.stderr)
	only := flags.String("only", ".", "ask the sections that match this `regexp`, such as 'lease|queue'")
	flags.Usage = func() {
		fmt.Fprintln(p.stderr, "usage: scripts/conformance [-only <regexp>]")
		flags.PrintDefaults()
	}
	if err := flags.Parse(args); errors.Is(err, flag.ErrHelp) {
		return exitOK
	} else if err != nil {
		return exitUsage
	}
	wanted, err := regexp.Compile(*only)
	if err != nil || flags.NArg() > 0 {
		fmt.Fprintln(p.stderr, "conformance: error: -only is not a regular expression, or there are arguments")
		return exitUsage
	}
	account, err := azaccount.Resolve(azaccount.Flags{}, p.getenv)
	if err == nil && account.Endpoint(azaccount.Blob) == "" {
		err = &azaccount.Error{Message: "no account is given", Hint: "set AZURE_STORAGE_CONNECTION_STRING, or AZURE_STORAGE_ACCOUNT and AZURE_STORAGE_KEY or AZURE_STORAGE_SAS_TOKEN"}
	}
	if err != nil {
		fmt.Fprintf(p.stderr, "conformance: error: %v\n", err)
		if e, ok := errors.AsType[*azaccount.Error](err); ok && e.Hint != "" {
			fmt.Fprintf(p.stderr, "conformance: hint: %s\n", e.Hint)
		}
		return exitUsage
	}
	r := &rig{ctx: ctx, account: account, emulator: account.Emulator(azaccount.Blob), stderr: p.stderr, hide: hidden(account)}
	if err := r.connect(p.transport); err != nil {
		fmt.Fprintf(p.stderr, "conformance: error: %s\n", r.hide(err.Error()))
		return exitUsage
	}
	defer r.transport.CloseIdleConnections()
	out := &report{out: p.stdout, hide: r.hide, emulator: r.emulator}
	out.begin(r)
	// The removal comes last whatever happens before, and has its own time after an interrupt.
	r.ask(out, wanted)
	left := r.remove()
	out.end(r)
	switch {
	case ctx.Err() != nil:
		return exitInterrupted
	case out.different > 0 || left > 0 || out.rules == 0:
		return exitDifferent
	}
	return exitOK
}
