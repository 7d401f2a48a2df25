package cli

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"github.com/azconc/azconc/pkg/azurite"
)

const connectionVariable = "AZURE_STORAGE_CONNECTION_STRING"

func newDevCmd(f *Factory) *cobra.Command {
	return newGroupCmd("dev", "Azurite on this machine, for development and tests",
		newDevRunCmd(f, nil),
		newDevUpCmd(f, nil),
		newDevInstallCmd(f, nil),
	)
}

func (f *Factory) startAzurite(ctx context.Context, opts *azurite.Options) (*azurite.Server, error) {
	opts.Progress = &notes{f: f}
	server, err := azurite.Start(ctx, opts)
	return server, f.azuriteError(err)
}

// azuriteError prints what Azurite or npm has said, which is more than an error's one line can hold, and takes the way
// out of an error into its hint.
func (f *Factory) azuriteError(err error) error {
	if tool, ok := errors.AsType[*azurite.ToolError](err); ok {
		return withHint(errors.New(tool.Problem), tool.Hint)
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
	f    *Factory
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
