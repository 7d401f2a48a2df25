package tf

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/user"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/azconc/azconc/cmd/azconc/internal/cli"
	"github.com/azconc/azconc/cmd/azconc/internal/cli/fail"
	"github.com/azconc/azconc/cmd/azconc/internal/cli/ref"
	"github.com/azconc/azconc/cmd/azconc/internal/cli/show"
	"github.com/azconc/azconc/cmd/azconc/internal/tfstate"
)

type pushOptions struct {
	State ref.Blob
	File  string
	Read  string
}

func pushVerb() cli.Verb[pushOptions] {
	return cli.Verb[pushOptions]{
		Use:   "push <container/state> [<file>]",
		Short: "Store the state that a run was left with, unless another run has written since",
		Long: `Store the state that a run of azconc tf run was left with in errored.tfstate, under a lock, and only if the stored state is still the
one that this run had read.

Otherwise nothing is stored, the exit code is 4, and a line for each resource says what either run did. terraform state push would
store it all the same, because a run that was refused has the higher serial, and the resources of the other run would be forgotten.
Import what the run has created into the state that is stored, and remove errored.tfstate.

What the run had read is in a second file, errored.tfstate.read, which azconc tf run writes. Both are removed by nobody.`,
		Example: `  azconc tf push tfstate/prod.tfstate
  azconc tf push tfstate/prod.tfstate errored.tfstate --read before.tfstate`,
		Args: cobra.RangeArgs(1, 2),
		Flags: func(opts *pushOptions, set *pflag.FlagSet) {
			set.StringVar(&opts.Read, "read", "", "the `file` with the state that the run had read (default <file>.read)")
		},
		Parse: func(opts *pushOptions, in cli.Input) (err error) {
			if opts.State, err = parseState(in.Args[0]); err != nil {
				return err
			}
			opts.File = errored
			if len(in.Args) == 2 {
				opts.File = in.Args[1]
			}
			if opts.File == "" || in.Flags.Changed("read") && opts.Read == "" {
				return fail.Usagef("the name of a file is empty")
			}
			if opts.Read == "" {
				opts.Read = opts.File + readSuffix
			}
			return nil
		},
		Run: pushRun,
	}
}

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

func pushRun(ctx context.Context, f *cli.Factory, opts *pushOptions) error {
	state, read, err := readPair(opts.File, opts.Read)
	if err != nil {
		return err
	}
	client, err := f.Container(opts.State)
	if err != nil {
		return err
	}
	session := tfstate.New(ctx, client, opts.State.Blob, tfstate.Options{Name: opts.State.String(), Note: f.Notef})
	pushed, err := session.Push(read, state, who())
	_, _ = session.Close()
	switch {
	case errors.Is(err, tfstate.ErrMoved):
		return opts.compare(f, read, state, pushed.Current)
	case err != nil:
		return fmt.Errorf("%s: %w", opts.State, err)
	}
	r := pushResult{Outcome: "updated", State: opts.State.String(), File: opts.File, Cost: f.Cost()}
	if pushed.Already {
		r.Outcome = "unchanged"
	}
	return f.Print(r)
}

// compare prints what either run did, and returns the conflict.
func (o *pushOptions) compare(f *cli.Factory, read, ours, theirs []byte) error {
	conflict := &movedError{on: o.State}
	var err error
	if conflict.differences, err = tfstate.Compare(read, ours, theirs); err != nil {
		f.Notef("%s: the states cannot be compared: %v", o.State, err)
	}
	for _, d := range conflict.differences {
		var deeds []string
		if d.Ours != "" {
			deeds = append(deeds, d.Ours+" by the run that left "+o.File)
		}
		if d.Theirs != "" {
			deeds = append(deeds, d.Theirs+" in the stored state")
		}
		f.Notef("%s: %s", d.Resource, strings.Join(deeds, ", "))
	}
	return fail.WithHint(conflict, "terraform import brings what the run has created into the stored state; terraform state push would erase what the other run did")
}

// movedError reports that another run has written the state. Nothing was stored.
type movedError struct {
	on          ref.Blob
	differences []tfstate.Difference
}

func (e *movedError) Error() string { return fmt.Sprintf("%v: %v", e.on, tfstate.ErrMoved) }
func (e *movedError) Facts() map[string]any {
	return map[string]any{"differences": e.differences}
}
func (*movedError) Verdict() fail.Verdict {
	return fail.Verdict{Code: fail.ExitConflict, Outcome: "conflict"}
}

// who describes this process to those who find the lock.
func who() string {
	host, _ := os.Hostname()
	if u, err := user.Current(); err == nil {
		return u.Username + "@" + host
	}
	return host
}
