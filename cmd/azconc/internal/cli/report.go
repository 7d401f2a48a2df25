package cli

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"github.com/azconc/azconc/cmd/azconc/internal/cli/fail"
	"github.com/azconc/azconc/cmd/azconc/internal/cli/ref"
)

// Report prints on stderr, and with -o json also on stdout, how a command failed, and returns its exit code.
func (f *Factory) Report(ctx context.Context, cmd *cobra.Command, err error) int {
	if err == nil {
		return fail.ExitOK
	}
	if f.ctx != nil {
		ctx = f.ctx
	}
	err = fail.Ended(ctx, err)
	f.failure = err
	v := fail.Judge(err)
	command, on := f.where(cmd)
	message, hint := fail.Message(err, v, command, on), fail.Hint(err, v, command, on)
	if message != "" {
		f.Notef("%s", strings.TrimPrefix(strings.TrimSpace(command+" "+on)+": "+message, ": "))
	}
	if hint != "" {
		f.Notef("hint: %s", hint)
	}
	if _, wrong := errors.AsType[*fail.UsageError](err); wrong {
		fmt.Fprintf(f.Err, "usage: %s\n", cmd.UseLine())
	} else {
		f.printFailure(fail.Object(err, v, on, message, hint))
	}
	return v.Code
}

// where returns the command and its resource, with which messages begin: "blob update", "c/n.json".
func (f *Factory) where(cmd *cobra.Command) (command, on string) {
	command = strings.TrimPrefix(strings.TrimPrefix(cmd.CommandPath(), "azconc"), " ")
	if cmd.HasSubCommands() {
		return command, ""
	}
	arg := 0
	if cmd.Annotations[ResourceArg] != "" {
		arg = 1
	}
	return command, ref.Display(cmd.Flags().Arg(arg))
}

// ResourceArg annotates a command whose second argument is the resource that it changes.
const ResourceArg = "azconc-resource-is-second"
