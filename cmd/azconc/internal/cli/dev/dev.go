// Package dev has the verbs of azconc dev, which run an emulator: the service in memory, or Azurite.
package dev

import (
	"context"
	"fmt"
	"io"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/azconc/azconc/cmd/azconc/internal/cli"
	"github.com/azconc/azconc/cmd/azconc/internal/cli/engine"
)

const connectionVariable = "AZURE_STORAGE_CONNECTION_STRING"

func NewCmd(f *cli.Factory) *cobra.Command {
	return cli.NewGroupCmd("dev", "An emulator on this machine, for development and tests", runVerb().Command(f), upVerb().Command(f))
}

type upOptions struct {
	Engine engine.Options
}

func upVerb() cli.Verb[upOptions] {
	return cli.Verb[upOptions]{
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
		Flags: func(opts *upOptions, set *pflag.FlagSet) {
			opts.Engine.Flag(set)
			opts.Engine.FaultFlags(set)
			set.StringVar(&opts.Engine.Location, "location", "", "`directory` for the data of Azurite, which are kept")
			set.BoolVar(&opts.Engine.DefaultPorts, "default-ports", false, "listen on 10000, 10001 and 10002, where UseDevelopmentStorage=true looks, and on 10004 for files")
			set.StringSliceVar(&opts.Engine.Accounts, "accounts", nil, "`names` of more accounts, with commas between them; each gets a key of its own")
		},
		Parse: func(opts *upOptions, in cli.Input) error {
			if opts.Engine.Location != "" && !in.Flags.Changed("engine") {
				opts.Engine.Engine = engine.Azurite // only it keeps data
			}
			return opts.Engine.Check()
		},
		Run: upRun,
	}
}

type upResult struct {
	Outcome          string `json:"outcome"`
	ConnectionString string `json:"connection_string"`
	BlobEndpoint     string `json:"blob_endpoint"`
	QueueEndpoint    string `json:"queue_endpoint"`
	TableEndpoint    string `json:"table_endpoint"`
	FileEndpoint     string `json:"file_endpoint,omitempty"`

	Engine   string   `json:"engine"`
	Accounts []string `json:"other_connection_strings,omitempty"`
	names    []string
}

func upRun(ctx context.Context, f *cli.Factory, opts *upOptions) (err error) {
	server, err := engine.Start(ctx, f, opts.Engine)
	if err != nil {
		return err
	}
	defer func() {
		if stopped := server.Stop(); err == nil {
			err = stopped
		}
	}()
	// Nothing is redacted: the connection string is the result, and the keys of an emulator are no secrets.
	if err := f.PrintAsIs(connections(server, opts.Engine.Engine)); err != nil {
		return err
	}
	note := server.Name + " is up until interrupted"
	if opts.Engine.Engine == engine.Memory {
		note += "; it keeps nothing"
	}
	if len(opts.Engine.Faults) > 0 {
		note += ", and fails as --faults says"
	}
	f.Notef("%s", note)
	select {
	case <-server.Done():
		return nil // Stop says why
	case <-ctx.Done():
		if signalled(ctx) {
			return nil
		}
		return context.Cause(ctx)
	}
}

func (r upResult) Text(w io.Writer) {
	fmt.Fprintf(w, "export %s='%s'\n", connectionVariable, r.ConnectionString)
	for i, a := range r.Accounts {
		fmt.Fprintf(w, "# %s: '%s'\n", r.names[i], a)
	}
}

func connections(server *engine.Running, name string) upResult {
	first := server.Accounts[0]
	r := upResult{
		Outcome: "running", ConnectionString: server.ConnectionString(), Engine: name,
		BlobEndpoint: first.BlobURL, QueueEndpoint: first.QueueURL, TableEndpoint: first.TableURL, FileEndpoint: first.FileURL,
	}
	for _, a := range server.Accounts[1:] {
		r.Accounts, r.names = append(r.Accounts, a.ConnectionString()), append(r.names, a.Name)
	}
	return r
}
