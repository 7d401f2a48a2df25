// Package group has azconc group: the parts of a job, over the members that run it.
package group

import (
	"context"
	"fmt"
	"io"
	"strconv"

	"github.com/spf13/cobra"

	"github.com/azconc/azconc/cmd/azconc/internal/cli"
	"github.com/azconc/azconc/cmd/azconc/internal/cli/lock"
	"github.com/azconc/azconc/cmd/azconc/internal/cli/ref"
	"github.com/azconc/azconc/cmd/azconc/internal/cli/show"
	"github.com/azconc/azconc/pessimistic"
	lib "github.com/azconc/azconc/pessimistic/group"
)

func NewCmd(f *cli.Factory) *cobra.Command {
	return cli.NewGroupCmd("group", "Share the parts of a job among members that come and go", newRunCmd(f), newShowCmd(f))
}

type shown struct {
	Outcome string        `json:"outcome"`
	Group   string        `json:"resource"`
	Parts   []shownPart   `json:"parts"`
	Members []shownMember `json:"members"`
}

// shownPart is a part with its holder, or the last one.
type shownPart struct {
	Part   int    `json:"part"`
	Held   bool   `json:"held"`
	Owner  string `json:"owner,omitempty"`
	Member string `json:"member,omitempty"`
	Since  string `json:"since,omitempty"`
	Fence  int64  `json:"fence,omitempty"`
}

type shownMember struct {
	Member string `json:"member"`
	Owner  string `json:"owner"`
	Parts  int    `json:"parts"`
	Since  string `json:"since"`
}

func (r shown) Text(w io.Writer) {
	for _, p := range r.Parts {
		state, fence := "free", ""
		if p.Held {
			state = "held"
		}
		if p.Fence != 0 {
			fence = strconv.FormatInt(p.Fence, 10)
		}
		fmt.Fprintf(w, "part %3d  %s  %-20s  %-13s  %s\n", p.Part, state, p.Since, fence, show.Line(p.Owner))
	}
	for _, m := range r.Members {
		fmt.Fprintf(w, "member %s  %3d parts  %-20s  %s\n", m.Member, m.Parts, m.Since, show.Line(m.Owner))
	}
}

func newShowCmd(f *cli.Factory) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "show <container/name>",
		Short: "Show who has which part, and who takes part",
		Long: `Show for each part who works on it, since when and with which fence, or who did last; and for each member how many parts it has,
and since when it takes part.

A part is the lock "<container/name>/<number>": azconc lock show and lock break work on it. Its holder loses it, and another member, or
the same one, begins. Requests: 1.`,
		Example: "  azconc group show jobs/ingest",
	}
	open := func(on ref.Blob) (*pessimistic.Locker, error) { return lock.Locker(f, on, nil) }
	return cli.On(f, cmd, lock.ParseLock, open, func(ctx context.Context, on ref.Blob, k *pessimistic.Locker) (cli.Result, error) {
		seen, err := lib.Show(ctx, k, on.Blob)
		if err != nil {
			return nil, err
		}
		r := shown{Outcome: "found", Group: on.String(), Parts: []shownPart{}, Members: []shownMember{}}
		for _, p := range seen.Parts {
			r.Parts = append(r.Parts, shownPart{Part: p.Number, Held: p.Held, Owner: p.Owner, Member: p.Member, Since: show.Time(p.Since), Fence: int64(p.Fence)})
		}
		for _, m := range seen.Members {
			r.Members = append(r.Members, shownMember{Member: m.ID, Owner: m.Owner, Parts: m.Parts, Since: show.Time(m.Since)})
		}
		return r, nil
	})
}
