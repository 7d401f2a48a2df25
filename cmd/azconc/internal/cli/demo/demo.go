// Package demo has azconc demo: what goes wrong with the textbook loops, and how azconc prevents it.
package demo

import (
	"context"
	"io"
	"strings"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore"
	"github.com/Azure/azure-sdk-for-go/sdk/azcore/policy"
	"github.com/spf13/cobra"

	"github.com/azconc/azconc/cmd/azconc/internal/azaccount"
	"github.com/azconc/azconc/cmd/azconc/internal/cli"
	"github.com/azconc/azconc/cmd/azconc/internal/cli/engine"
	"github.com/azconc/azconc/cmd/azconc/internal/cli/fail"
	"github.com/azconc/azconc/cmd/internal/demo/scene"
)

type options struct {
	Engine    engine.Options
	Scenes    []string // by name; empty: all
	OnAccount bool     // flags name an account
	Trace     bool
}

func NewCmd(f *cli.Factory) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "demo",
		Short: "Show failures on an emulator, and how azconc prevents them",
		Long: `Show failures on an emulator, and how azconc prevents them.

The first scenes compare the loops that documentation shows with azconc, while some responses are lost. The others follow
Microsoft's "Managing concurrency in Azure Storage". The table counts what each loop reported and what happened. With -v, what
was sent and what came back follows, with the library call and the command that do it. --scene plays the scenes that it names.

The demo starts the service in memory, and stops it at the end. It needs no account and nothing else. With --engine azurite it
starts Microsoft's Azurite, which needs Node.js and npm and is installed first if it is missing; it has no files, so their scene is
skipped. --account-name or --connection-string plays the scenes on that account; an account in the environment is not used. What
the scenes create has names of its own, begins with azconc, and is deleted at the end.

Scenes are played at the same time:

` + strings.TrimSuffix(scene.List(), "\n"),
		Example: `  azconc demo
  azconc demo --scene editors,lease -v
  azconc demo --engine azurite`,
	}
	set, opts := cmd.Flags(), options{}
	opts.Engine.Flag(set)
	set.StringSliceVar(&opts.Scenes, "scene", nil, "play the scenes with these `names` only, with commas between them")
	var names []string
	for _, s := range scene.All {
		names = append(names, s.Name)
	}
	_ = cmd.RegisterFlagCompletionFunc("scene", cobra.FixedCompletions(names, cobra.ShellCompDirectiveNoFileComp)) // fails without the flag
	parse := func() (options, error) {
		if _, err := scene.Find(opts.Scenes...); err != nil {
			return opts, fail.WithHint(fail.Usagef("--scene %v", err), "azconc demo --help names them")
		}
		for _, name := range []string{"account-name", "connection-string", "connection-string-file", "blob-endpoint"} {
			opts.OnAccount = opts.OnAccount || set.Changed(name)
		}
		if opts.OnAccount && set.Changed("engine") {
			return opts, fail.WithHint(fail.Usagef("--engine starts an emulator, and the flags name an account"), "omit one of them")
		}
		opts.Trace = set.Changed("verbose")
		return opts, nil
	}
	return cli.OnAccount(f, cmd, parse, func(ctx context.Context, opts options) (cli.Result, error) { return run(ctx, f, opts) })
}

type result struct {
	Outcome string         `json:"outcome"`
	Scenes  []scene.Result `json:"scenes"`
	trace   bool
}

func (r result) Text(w io.Writer) {
	scene.Text(w, r.Scenes)
	if r.trace {
		scene.Trace(w, r.Scenes)
	}
}

func run(ctx context.Context, f *cli.Factory, opts options) (cli.Result, error) {
	clients := func() azcore.ClientOptions {
		o := f.ClientOptions()
		o.PerRetryPolicies = []policy.Policy{f.Monitor} // without the lines of -v: the trace has them
		return o
	}
	if !opts.OnAccount {
		server, err := engine.Start(ctx, f, opts.Engine)
		if err != nil {
			return nil, err
		}
		defer func() { _ = server.Stop() }() // an error at its end does not matter to the demo
		if _, err := f.Use(server.ConnectionString()); err != nil {
			return nil, err
		}
	}
	a, err := f.Account()
	if err != nil {
		return nil, err
	}
	rig := scene.Rig{Blobs: a.BlobService, Queues: a.QueueService, Tables: a.TableService, Options: clients}
	if a.Endpoint(azaccount.File) != "" && a.Emulator(azaccount.File) == a.Emulator(azaccount.Blob) { // Azurite has none
		rig.Files = a.FileService
	}
	results, err := scene.PlayAll(ctx, rig, opts.Scenes...)
	return result{"done", results, opts.Trace}, err
}
