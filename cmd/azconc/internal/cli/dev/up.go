package dev

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"

	"github.com/spf13/pflag"

	"github.com/azconc/azconc/cmd/azconc/internal/cli"
	"github.com/azconc/azconc/cmd/azconc/internal/cli/fail"
	"github.com/azconc/azconc/pkg/azurite"
)

type upOptions struct {
	Location     string
	DefaultPorts bool
}

func upVerb() cli.Verb[upOptions] {
	return cli.Verb[upOptions]{
		Use:   "up",
		Short: "Run Azurite until interrupted",
		Long: `Run Azurite until interrupted, and print the line that configures a shell to use it.

It listens on 127.0.0.1 only, on free ports, and its data is deleted when it ends; --default-ports and --location change
that. When interrupted, it ends with exit code 0.`,
		Example: `  azconc dev up
  azconc dev up --default-ports --location ./azurite-data`,
		Flags: func(opts *upOptions, set *pflag.FlagSet) {
			set.StringVar(&opts.Location, "location", "", "`directory` for the data, which is kept")
			set.BoolVar(&opts.DefaultPorts, "default-ports", false, "listen on 10000, 10001 and 10002, where UseDevelopmentStorage=true looks")
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
}

func upRun(ctx context.Context, f *cli.Factory, opts *upOptions) (err error) {
	o := &azurite.Options{Location: opts.Location}
	if opts.DefaultPorts {
		o.BlobPort, o.QueuePort, o.TablePort = 10000, 10001, 10002
	}
	server, err := startAzurite(f, ctx, o)
	if err != nil {
		return err
	}
	defer func() {
		if stopped := server.Stop(); err == nil {
			err = azuriteError(f, stopped)
		}
	}()
	if err := printConnection(f, server); err != nil {
		return err
	}
	f.Notef("Azurite %s is up until interrupted", azurite.Version)
	select {
	case <-server.Done():
		return nil // Stop says why
	case <-ctx.Done():
		if _, ok := errors.AsType[*fail.SignalError](context.Cause(ctx)); ok {
			return nil
		}
		return context.Cause(ctx)
	}
}

// printConnection does not use Print: the connection string is the result, and Azurite's key is no secret.
func printConnection(f *cli.Factory, server *azurite.Server) error {
	if f.Quiet {
		return nil
	}
	if f.JSON() {
		return json.NewEncoder(f.Out).Encode(upResult{
			Outcome: "running", ConnectionString: server.ConnectionString(),
			BlobEndpoint: server.BlobURL(), QueueEndpoint: server.QueueURL(), TableEndpoint: server.TableURL(),
		})
	}
	_, err := io.WriteString(f.Out, fmt.Sprintf("export %s='%s'\n", connectionVariable, server.ConnectionString()))
	return err
}
