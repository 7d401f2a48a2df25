package tf

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/spf13/pflag"

	"github.com/azconc/azconc/cmd/azconc/internal/cli"
	"github.com/azconc/azconc/cmd/azconc/internal/cli/fail"
	"github.com/azconc/azconc/cmd/azconc/internal/cli/ref"
	"github.com/azconc/azconc/cmd/azconc/internal/cli/show"
	"github.com/azconc/azconc/cmd/azconc/internal/tfstate"
	"github.com/azconc/azconc/pessimistic"
)

type unlockOptions struct {
	State ref.Blob
	ID    string
	Yes   bool
}

func unlockVerb() cli.Verb[unlockOptions] {
	return cli.Verb[unlockOptions]{
		Use:   "unlock <container/state> [--id <id>] [--yes]",
		Short: "Release the lock that a run of Terraform or OpenTofu has left",
		Long: `Release the lock that a run of Terraform or OpenTofu has left, after a question that says who holds it and since when. Only the
lock that was shown is released, by its ID: if another run holds the state by then, nothing changes, and the exit code is 4.

If the metadata describe no holder, in which case force-unlock cannot help, nobody knows the ID. Then the lock is broken: azconc
looks again 5 s later, and breaks it only if nothing has changed. Unlocking a free state changes nothing.

A run that is still alive loses the lock: its writes are refused, and it leaves its state in errored.tfstate. Locks of azconc tf
run end by themselves within a minute after their run, so there is no need to release them.`,
		Example: `  azconc tf unlock tfstate/prod.tfstate
  azconc tf unlock tfstate/prod.tfstate --id 6d6b9d1c-8f3e-4b1c-9d3c-0d1f6f5a2b11 --yes`,
		Flags: func(opts *unlockOptions, set *pflag.FlagSet) {
			set.StringVar(&opts.ID, "id", "", "release the lock only if it has this `id`")
			set.BoolVar(&opts.Yes, "yes", false, "do not ask")
		},
		Resource: func(opts *unlockOptions, arg string) (err error) { opts.State, err = parseState(arg); return err },
		Parse: func(opts *unlockOptions, in cli.Input) error {
			if in.Flags.Changed("id") && opts.ID == "" {
				return fail.Usagef("--id is empty")
			}
			return nil
		},
		Run: unlockRun,
	}
}

type unlockResult struct {
	Outcome string `json:"outcome"` // released, broken, free or declined
	shown
	cli.Cost
}

func (r unlockResult) Text(w io.Writer) {
	switch r.Outcome {
	case "free":
		fmt.Fprintf(w, "free %s: it was not locked\n", r.State)
	case "declined":
		fmt.Fprintf(w, "unchanged %s\n", r.State)
	case "broken":
		fmt.Fprintf(w, "broken %s, whose lock described no holder\n", r.State)
	default:
		fmt.Fprintf(w, "released %s of %s, id %s\n", r.State, show.Line(show.OrAnother(r.Who)), show.Line(r.ID))
	}
}

func unlockRun(ctx context.Context, f *cli.Factory, opts *unlockOptions) error {
	client, err := f.Blob(opts.State)
	if err != nil {
		return err
	}
	l, err := tfstate.Look(ctx, client)
	if err != nil {
		return err
	}
	s := showState(opts.State, l)
	done := func(outcome string) error {
		return f.Print(unlockResult{Outcome: outcome, shown: s, Cost: f.Cost()})
	}
	if !l.Held {
		return done("free")
	}
	unnamed := errors.Is(l.Problem, tfstate.ErrNoInfo)
	switch {
	case l.Problem != nil && !unnamed:
		return fail.WithHint(fmt.Errorf("%w, so the lock's ID is not known", l.Problem), "azconc blob lease break "+opts.State.String()+" ends the lease without its id")
	case !unnamed && !l.Info.Named():
		return fail.WithHint(fmt.Errorf("the lock's ID %.64q is not a GUID, so it cannot be the id of a lease", l.Info.ID), "azconc blob lease break "+opts.State.String()+" ends the lease without its id")
	case opts.ID != "" && unnamed:
		return fail.WithHint(&changedError{opts.State, "its lock describes no holder, so it cannot be compared with --id"}, "without --id, azconc tf unlock breaks it")
	case opts.ID != "" && !strings.EqualFold(opts.ID, l.Info.ID):
		return &changedError{opts.State, "it is locked by " + show.OrAnother(s.Who) + " with the ID " + s.ID}
	}
	if agreed, err := opts.agreed(ctx, f, s, unnamed); err != nil {
		return err
	} else if !agreed {
		return done("declined")
	}
	if unnamed {
		if err := tfstate.BreakUnnamed(ctx, client, l.ETag); errors.Is(err, tfstate.ErrChanged) {
			return &changedError{opts.State, "another run has locked it meanwhile"}
		} else if err != nil {
			return err
		}
		return done("broken")
	}
	if err := tfstate.Release(ctx, client, l.Info.ID); errors.Is(err, pessimistic.ErrLost) {
		return &changedError{opts.State, "the lock that was shown has ended, and another run may hold the state now"}
	} else if err != nil {
		return err
	}
	return done("released")
}

// agreed asks whether the lock shall be released, unless --yes is given.
func (o *unlockOptions) agreed(ctx context.Context, f *cli.Factory, s shown, unnamed bool) (bool, error) {
	if o.Yes {
		return true, nil
	}
	if !f.InTerminal {
		return false, fail.WithHint(fail.Usagef("stdin is not a terminal, so nobody can be asked"), "--yes answers the question; --id names the lock that it is about")
	}
	if unnamed {
		f.Notef("%s is locked, and its metadata do not say by whom. It was last modified %s.", s.State, ago(s.ModMS))
	} else {
		f.Notef("%s is locked by %s (%s, ID %s), since %s by that machine's clock. It was last modified %s.",
			s.State, show.Line(show.OrAnother(s.Who)), show.Line(s.Operation), show.Line(s.ID), ago(s.CreatedMS), ago(s.ModMS))
	}
	return f.Confirmed(ctx, "Is that run certainly over? Only yes releases the lock: ")
}

// changedError reports that the lock is not the one to release. Nothing was changed.
type changedError struct {
	on  ref.Blob
	why string
}

func (e *changedError) Error() string { return e.why }
func (*changedError) Verdict() fail.Verdict {
	return fail.Verdict{Code: fail.ExitConflict, Outcome: "conflict"}
}
