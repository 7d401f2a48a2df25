// Package engine starts the emulator of azconc dev, demo and bench: the service in memory, or Azurite.
package engine

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/spf13/pflag"

	"github.com/azconc/azconc/cmd/azconc/internal/cli"
	"github.com/azconc/azconc/cmd/azconc/internal/cli/fail"
	"github.com/azconc/azconc/cmd/azconc/internal/cli/flags"
	"github.com/azconc/azconc/pkg/aztest"
	"github.com/azconc/azconc/pkg/aztest/emulator"
	"github.com/azconc/azconc/pkg/azurite"
)

// The engines.
const (
	Memory  = "memory"
	Azurite = "azurite"
)

// Options are the flags of the commands that start an emulator.
type Options struct {
	Engine       string // Memory, Azurite, or "" for the default
	Location     string // a folder for the data, for Azurite
	DefaultPorts bool
	Faults       []aztest.Fault
	Seed         uint64
	RoundTrip    time.Duration // what every request takes, in the service in memory; 0 for what it takes
}

// Flag adds --engine.
func (o *Options) Flag(set *pflag.FlagSet) {
	flags.OneOf(set, &o.Engine, "engine", "the emulator", Memory, Azurite)
}

// FaultFlags adds --faults and --faults-seed.
func (o *Options) FaultFlags(set *pflag.FlagSet) {
	flags.Text(set, &o.Faults, "faults", "`faults` of the service in memory, such as lose-answer=5%,slow=10%:2s", func(text string) ([]aztest.Fault, error) {
		faults, err := emulator.ParseFaults(text)
		if err != nil {
			return nil, fail.Usagef("--faults: %v", err)
		}
		return faults, nil
	})
	set.Uint64Var(&o.Seed, "faults-seed", 0, "`number` that selects the requests that meet a fault")
}

// FaultHelp is the part of a verb's help that explains --faults.
func FaultHelp() string {
	return `--faults makes the service in memory fail, so that you see what your code does then: KIND=RATE[:DELAY][:STATUS][@OPERATION],
with commas between them. RATE is 5% or 0.05. OPERATION is a name of the REST reference, such as Put Blob, or writes. The same
requests in the same order meet the same faults.

` + emulator.FaultHelp()
}

// Check refuses flags that the engine does not have.
func (o *Options) Check() error {
	switch {
	case o.Engine != Azurite && o.Location != "":
		return fail.WithHint(fail.Usagef("--location %s keeps data, and the service in memory keeps none", o.Location), "give --engine azurite")
	case o.Engine == Azurite && len(o.Faults) > 0:
		return fail.WithHint(fail.Usagef("--faults are those of the service in memory"), "give --engine memory")
	}
	return nil
}

// Server is a running emulator.
type Server interface {
	// Done returns a channel that is closed when the emulator has ended, by Stop or by itself.
	Done() <-chan struct{}
	// Stop ends it. The error is why it had ended by itself.
	Stop() error
}

// Running is a started emulator and its account, the well-known one.
type Running struct {
	Server
	emulator.Account
	// Name names the emulator in messages.
	Name string
}

// Start starts the emulator. Its notes go to f.
func Start(ctx context.Context, f *cli.Factory, o Options) (*Running, error) {
	if o.Engine == Azurite {
		return startAzurite(ctx, f, o)
	}
	options := &emulator.Options{Faults: o.Faults, Seed: o.Seed, Log: &notes{f: f}}
	if o.RoundTrip > 0 {
		options.Faults = append(slices.Clip(o.Faults), aztest.Fault{Kind: aztest.Slow, Delay: o.RoundTrip})
	}
	if o.DefaultPorts {
		options.BlobPort, options.QueuePort, options.TablePort, options.FilePort = 10000, 10001, 10002, 10004
	}
	server, err := emulator.Start(ctx, options)
	if err != nil {
		return nil, err
	}
	return &Running{Server: server, Account: server.Accounts()[0], Name: "the service in memory"}, nil
}

func startAzurite(ctx context.Context, f *cli.Factory, o Options) (*Running, error) {
	options := &azurite.Options{Location: o.Location, Progress: &notes{f: f}}
	if o.DefaultPorts {
		options.BlobPort, options.QueuePort, options.TablePort = 10000, 10001, 10002
	}
	server, err := azurite.Start(ctx, options)
	if err != nil {
		return nil, explain(f, err)
	}
	a := server.Accounts()[0]
	account := emulator.Account{Name: a.Name, Key: a.Key, BlobURL: a.BlobURL, QueueURL: a.QueueURL, TableURL: a.TableURL}
	return &Running{Server: &process{server, f}, Account: account, Name: "Azurite " + azurite.Version}, nil
}

// process is an Azurite whose errors are explained.
type process struct {
	*azurite.Server
	f *cli.Factory
}

func (p *process) Stop() error { return explain(p.f, p.Server.Stop()) }

// explain prints the output of Azurite or npm, which does not fit into one line, and turns the error's advice into a hint.
func explain(f *cli.Factory, err error) error {
	if tool, ok := errors.AsType[*azurite.ToolError](err); ok {
		return fail.WithHint(errors.New(tool.Problem), tool.Hint)
	}
	if p, ok := errors.AsType[*azurite.ProcessError](err); ok {
		for line := range strings.Lines(p.Output) {
			fmt.Fprintf(f.Err, "  %s\n", strings.TrimRight(line, "\r\n"))
		}
		return fmt.Errorf("%s: %w", p.What, p.Err)
	}
	return err
}

// notes is a writer that prints whole lines as notes.
type notes struct {
	f    *cli.Factory
	line string
}

func (n *notes) Write(p []byte) (int, error) {
	n.line += string(p)
	for {
		line, rest, found := strings.Cut(n.line, "\n")
		if !found {
			return len(p), nil
		}
		n.line = rest
		n.f.Notef("%s", line)
	}
}
