package tf

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/user"
	"path/filepath"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/storage/azblob/container"
	"github.com/spf13/cobra"

	"github.com/azconc/azconc/cmd/azconc/internal/cli"
	"github.com/azconc/azconc/cmd/azconc/internal/cli/fail"
	"github.com/azconc/azconc/cmd/azconc/internal/cli/lock"
	"github.com/azconc/azconc/cmd/azconc/internal/cli/ref"
	"github.com/azconc/azconc/cmd/azconc/internal/cli/show"
	"github.com/azconc/azconc/cmd/azconc/internal/tfstate"
)

const (
	// errored is the file in which Terraform and OpenTofu leave a state that could not be stored.
	errored = "errored.tfstate"
	// readSuffix names the file beside it that has the state which the run had read.
	readSuffix = ".read"
)

type pushResult struct {
	Outcome string `json:"outcome"` // updated or unchanged
	State   string `json:"resource"`
	File    string `json:"file"`
	cli.Cost
}

func (r pushResult) Text(w io.Writer) {
	if r.Outcome == "unchanged" {
		fmt.Fprintf(w, "unchanged %s: %s was stored already\n", r.State, show.Line(r.File))
		return
	}
	fmt.Fprintf(w, "updated %s from %s\n", r.State, show.Line(r.File))
}

func newPushCmd(f *cli.Factory) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "push <container/state> [<file>]",
		Short: "Store the state that a run was left with, unless another run has written since",
		Long: `Store the state that a run of azconc tf run was left with in errored.tfstate, under a lock, and only if the stored state is still the
one that this run had read.

Otherwise nothing is stored, and the exit code is 4. terraform state push would
store it all the same, because a run that was refused has the higher serial, and the resources of the other run would be forgotten.
Import what the run has created into the state that is stored, and remove errored.tfstate.

What the run had read is in a second file, errored.tfstate.read, which azconc tf run writes. Both are removed by nobody.`,
		Example: `  azconc tf push tfstate/prod.tfstate
  azconc tf push tfstate/prod.tfstate module/errored.tfstate`,
		Args: cobra.RangeArgs(1, 2),
	}
	return cli.On(f, cmd, parseState, f.Container, func(ctx context.Context, on ref.Blob, client *container.Client) (cli.Result, error) {
		file := cmp.Or(cmd.Flags().Arg(1), errored)
		state, err := os.ReadFile(file)
		if err != nil {
			return nil, err
		}
		read, err := os.ReadFile(file + readSuffix)
		if errors.Is(err, os.ErrNotExist) {
			return nil, fail.WithHint(fmt.Errorf("what the run had read is not known: there is no %s", file+readSuffix), "azconc tf run writes it beside a state that it could not store")
		} else if err != nil {
			return nil, err
		}
		session := tfstate.New(ctx, client, on.Blob, tfstate.Options{Name: on.String(), Note: f.Notef})
		already, err := session.Push(read, state, who())
		_, _ = session.Close()
		switch {
		case errors.Is(err, tfstate.ErrMoved):
			return nil, fail.WithHint(&conflictError{fmt.Sprintf("%v: %v", on, err)},
				"terraform import brings what the run has created into the stored state; terraform state push would erase what the other run did")
		case err != nil:
			return nil, fmt.Errorf("%s: %w", on, err)
		case already:
			return pushResult{Outcome: "unchanged", State: on.String(), File: file, Cost: f.Cost()}, nil
		}
		return pushResult{Outcome: "updated", State: on.String(), File: file, Cost: f.Cost()}, nil
	})
}

// who describes this process to those who find the lock.
func who() string {
	host, _ := os.Hostname()
	if u, err := user.Current(); err == nil {
		return u.Username + "@" + host
	}
	return host
}

// conflictError reports that another run was there first. Nothing was changed.
type conflictError struct{ why string }

func (e *conflictError) Error() string { return e.why }
func (*conflictError) Verdict() fail.Verdict {
	return fail.Verdict{Code: fail.ExitConflict, Outcome: "conflict"}
}

// keepRead keeps what a run had read beside the state that it has left, for tf push. It returns the file of that state, which is empty
// if the run has left none.
func keepRead(dir string, began time.Time, read []byte) (left string, err error) {
	left = filepath.Join(dir, errored)
	if info, err := os.Stat(left); err != nil || info.ModTime().Before(began.Truncate(time.Second)) {
		return "", nil
	}
	return left, os.WriteFile(left+readSuffix, read, 0o600)
}

// unstoredError reports that the command has left a state that was not stored.
type unstoredError struct {
	cause error // why the lock was lost; nil if a write was refused for another reason
	code  int   // of the command, which counts if the lock was not lost
	file  string
}

func (e *unstoredError) Error() string {
	text := "the state that the command has left in " + e.file + " is not stored"
	if e.cause != nil {
		text += fmt.Sprintf(": the lock was lost while it ran: %v", e.cause)
	}
	return text
}
func (e *unstoredError) Unwrap() error { return e.cause }
func (e *unstoredError) Verdict() fail.Verdict {
	if e.cause == nil {
		return fail.Verdict{Code: e.code, Outcome: "command_failed"}
	}
	return fail.Verdict{Code: lock.ExitLost, Outcome: "lost"}
}
