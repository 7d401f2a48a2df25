package tf

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/Azure/azure-sdk-for-go/sdk/storage/azblob/blob"
	"github.com/spf13/cobra"

	"github.com/azconc/azconc/cmd/azconc/internal/cli"
	"github.com/azconc/azconc/cmd/azconc/internal/cli/fail"
	"github.com/azconc/azconc/cmd/azconc/internal/cli/ref"
	"github.com/azconc/azconc/cmd/azconc/internal/cli/show"
	"github.com/azconc/azconc/cmd/azconc/internal/tfstate"
	"github.com/azconc/azconc/pessimistic"
)

// unlocking is a run of azconc tf unlock.
type unlocking struct {
	f   *cli.Factory
	id  string
	yes bool
}

func newUnlockCmd(f *cli.Factory) *cobra.Command {
	u := &unlocking{f: f}
	cmd := &cobra.Command{
		Use:   "unlock <container/state> [--id <id>] [--yes]",
		Short: "Release the lock that a run of Terraform or OpenTofu has left",
		Long: `Release the lock that a run of Terraform or OpenTofu has left, after a question that says who holds it and since when. Only the
lock that was shown is released, by its ID: if another run holds the state by then, nothing changes, and the exit code is 4.

If the metadata describe no holder, in which case force-unlock cannot help, nobody knows the ID: azconc blob lease break ends such
a lock. Unlocking a free state changes nothing.

A run that is still alive loses the lock: its writes are refused, and it leaves its state in errored.tfstate. Locks of azconc tf
run end by themselves within a minute after their run, so there is no need to release them.`,
		Example: `  azconc tf unlock tfstate/prod.tfstate
  azconc tf unlock tfstate/prod.tfstate --id 6d6b9d1c-8f3e-4b1c-9d3c-0d1f6f5a2b11 --yes`,
	}
	cmd.Flags().StringVar(&u.id, "id", "", "release the lock only if it has this `id`")
	cmd.Flags().BoolVar(&u.yes, "yes", false, "do not ask")
	return cli.On(f, cmd, parseState, f.Blob, u.run)
}

type unlockResult struct {
	Outcome string `json:"outcome"` // released, free or declined
	shown
	cli.Cost
}

func (r unlockResult) Text(w io.Writer) {
	switch r.Outcome {
	case "free":
		fmt.Fprintf(w, "free %s: it was not locked\n", r.State)
	case "declined":
		fmt.Fprintf(w, "unchanged %s\n", r.State)
	default:
		fmt.Fprintf(w, "released %s of %s, id %s\n", r.State, show.Line(cmp.Or(r.Who, "another")), show.Line(r.ID))
	}
}

func (u *unlocking) run(ctx context.Context, on ref.Blob, client *blob.Client) (cli.Result, error) {
	l, err := tfstate.Look(ctx, client)
	if err != nil {
		return nil, err
	}
	s := showState(on, l)
	done := func(outcome string) (cli.Result, error) {
		return unlockResult{Outcome: outcome, shown: s, Cost: u.f.Cost()}, nil
	}
	if !l.Held {
		return done("free")
	}
	breakIt := "azconc blob lease break " + on.String() + " ends the lease without its id, once its run is certainly over"
	switch {
	case l.Problem != nil:
		return nil, fail.WithHint(fmt.Errorf("%w, so the lock's ID is not known", l.Problem), breakIt)
	case !l.Info.Named():
		return nil, fail.WithHint(fmt.Errorf("the lock's ID %.64q is not a GUID, so it cannot be the id of a lease", l.Info.ID), breakIt)
	case u.id != "" && !strings.EqualFold(u.id, l.Info.ID):
		return nil, conflict("it is locked by " + cmp.Or(s.Who, "another") + " with the ID " + s.ID)
	}
	question := fmt.Sprintf("%s is locked by %s (%s, ID %s), since %s by that machine's clock. It was last modified %s.\nazconc: "+
		"Is that run certainly over? Only yes releases the lock: ",
		s.State, show.Cell(cmp.Or(s.Who, "another")), show.Cell(s.Operation), show.Cell(s.ID), ago(s.CreatedMS), ago(s.ModMS))
	if agreed, err := u.f.Agreed(ctx, u.yes, question, "--id names the lock that it is about"); err != nil {
		return nil, err
	} else if !agreed {
		return done("declined")
	}
	if err := tfstate.Release(ctx, client, l.Info.ID); errors.Is(err, pessimistic.ErrLost) {
		return nil, conflict("the lock that was shown has ended, and another run may hold the state now")
	} else if err != nil {
		return nil, err
	}
	return done("released")
}

// conflict returns the error for another run that was there first. Nothing was changed.
func conflict(why string) error {
	return fail.Judged(fail.ExitConflict, "conflict", errors.New(why))
}
