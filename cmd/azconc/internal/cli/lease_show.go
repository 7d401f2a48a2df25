package cli

import (
	"context"
	"fmt"
	"io"

	"github.com/spf13/cobra"
)

type leaseShowOptions struct {
	factory *Factory
	noun    leaseNoun
	On      fmt.Stringer
}

func newLeaseShowCmd(noun leaseNoun) func(*Factory, func(*leaseShowOptions) error) *cobra.Command {
	return func(f *Factory, runF func(*leaseShowOptions) error) *cobra.Command {
		opts := &leaseShowOptions{factory: f, noun: noun}
		return &cobra.Command{
			Use:   "show " + noun.arg(),
			Short: "Show the lease's state",
			Long: `Show the lease's state: available, leased, expired, breaking or broken.

` + noun.holder(),
			Args:    resourceArgs(noun.arg()),
			Example: "  azconc " + string(noun) + " lease show " + noun.example(),
			RunE: func(cmd *cobra.Command, args []string) (err error) {
				if opts.On, err = noun.parse(args[0]); err != nil {
					return err
				}
				if runF != nil {
					return runF(opts)
				}
				return leaseShowRun(cmd.Context(), opts)
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

type leaseShown struct {
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

func (r leaseShown) text(w io.Writer) {
	printFields(w, "resource", r.Resource, "state", r.State, "status", r.Status, "duration", r.Duration, "owner", r.Owner,
		"since", r.Since, "last heartbeat", r.Heard, "etag", r.ETag)
}

func leaseShowRun(ctx context.Context, opts *leaseShowOptions) error {
	l, err := opts.factory.leased(opts.noun, opts.On, "")
	if err != nil {
		return err
	}
	r, err := l.show(ctx)
	if err != nil {
		return err
	}
	r.Outcome, r.Resource = "found", opts.On.String()
	return opts.factory.Print(r)
}
