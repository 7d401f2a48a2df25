package lease

import (
	"context"
	"fmt"
	"io"

	"github.com/spf13/cobra"

	"github.com/azconc/azconc/cmd/azconc/internal/cli"
	"github.com/azconc/azconc/cmd/azconc/internal/cli/show"
	"github.com/azconc/azconc/pessimistic"
	"github.com/azconc/azconc/pkg/lease"
)

type showOptions struct {
	factory *cli.Factory
	noun    leaseNoun
	On      fmt.Stringer
}

func newShowCmd(noun leaseNoun) func(*cli.Factory, func(*showOptions) error) *cobra.Command {
	return func(f *cli.Factory, runF func(*showOptions) error) *cobra.Command {
		opts := &showOptions{factory: f, noun: noun}
		return &cobra.Command{
			Use:   "show " + noun.arg(),
			Short: "Show the lease's state",
			Long: `Show the lease's state: available, leased, expired, breaking or broken.

` + noun.holder(),
			Args:    cli.ResourceArgs(noun.arg()),
			Example: "  azconc " + string(noun) + " lease show " + noun.example(),
			RunE: func(cmd *cobra.Command, args []string) (err error) {
				if opts.On, err = noun.parse(args[0]); err != nil {
					return err
				}
				if runF != nil {
					return runF(opts)
				}
				return showRun(cmd.Context(), opts)
			},
		}
	}
}

// holder explains how the holder can be identified.
func (n leaseNoun) holder() string {
	if n == "file" {
		return "If azconc holds it, the file's metadata names the holder and the time of its last heartbeat."
	}
	return "The service does not report who holds it or for how long; named locks do."
}

type Shown struct {
	Outcome  string `json:"outcome"`
	Resource string `json:"resource"`
	State    string `json:"state"`
	Status   string `json:"status"`
	Duration string `json:"duration"`
	ETag     string `json:"etag"`
	Owner    string `json:"owner,omitempty"` // of a file's lease
	Since    string `json:"since,omitempty"`
	Heard    string `json:"heard,omitempty"`
}

func (r Shown) Text(w io.Writer) {
	show.Fields(w, "resource", r.Resource, "state", r.State, "status", r.Status, "duration", r.Duration, "owner", r.Owner,
		"since", r.Since, "last heartbeat", r.Heard, "etag", r.ETag)
}

func showRun(ctx context.Context, opts *showOptions) error {
	l, err := leaseOn(opts.factory, opts.noun, opts.On)
	if err != nil {
		return err
	}
	seen, err := l.Look(ctx, "")
	if err != nil {
		return err
	}
	r := ShownOf(seen, opts.noun == "file")
	r.Outcome, r.Resource = "found", opts.On.String()
	return opts.factory.Print(r)
}

// ShownOf describes a lease; with its holder, if the resource's metadata names it.
func ShownOf(seen lease.Observation, holder bool) Shown {
	r := Shown{State: string(seen.State), Status: "unlocked", Duration: string(seen.Term), ETag: string(seen.ETag)}
	if seen.State.Free() {
		return r
	}
	r.Status = "locked"
	if holder {
		h := pessimistic.HolderOf(seen)
		r.Owner, r.Since, r.Heard = h.Name, show.Time(h.Since), show.Time(h.Heard)
	}
	return r
}
