package dev

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"github.com/azconc/azconc/cmd/azconc/internal/cli"
	"github.com/azconc/azconc/cmd/azconc/internal/cli/fail"
	"github.com/azconc/azconc/pkg/azurite"
)

const connectionVariable = "AZURE_STORAGE_CONNECTION_STRING"

func NewCmd(f *cli.Factory) *cobra.Command {
	return cli.NewGroupCmd("dev", "Azurite on this machine, for development and tests",
		runVerb().Command(f),
		upVerb().Command(f),
		installVerb().Command(f),
	)
}

func startAzurite(f *cli.Factory, ctx context.Context, opts *azurite.Options) (*azurite.Server, error) {
	opts.Progress = &notes{f: f}
	server, err := azurite.Start(ctx, opts)
	return server, azuriteError(f, err)
}

// azuriteError prints the output of Azurite or npm, which does not fit into one line, and turns the error's advice into a hint.
func azuriteError(f *cli.Factory, err error) error {
	if tool, ok := errors.AsType[*azurite.ToolError](err); ok {
		return fail.WithHint(errors.New(tool.Problem), tool.Hint)
	}
	if p, ok := errors.AsType[*azurite.ProcessError](err); ok {
		for line := range strings.Lines(p.Output) {
			fmt.Fprintf(f.Err, "  %s\n", strings.TrimRight(line, "\r\n"))
		}
		return fmt.Errorf("Azurite %s %w: %w", azurite.Version, p.Kind, p.Err)
	}
	return err
}

// notes prints whole lines as notes.
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
