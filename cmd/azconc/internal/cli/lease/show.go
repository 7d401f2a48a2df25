package lease

import (
	"context"
	"fmt"
	"io"

	"github.com/spf13/cobra"

	"github.com/azconc/azconc/cmd/azconc/internal/cli"
	"github.com/azconc/azconc/cmd/azconc/internal/cli/show"
	"github.com/azconc/azconc/pessimistic/files"
	"github.com/azconc/azconc/pkg/lease"
)

func (n leaseNoun) newShowCmd(f *cli.Factory) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "show " + n.arg(),
		Short: "Show the lease's state",
		Long: `Show the lease's state: available, leased, expired, breaking or broken.

` + n.holder(),
		Example: "  azconc " + string(n) + " lease show " + n.example(),
	}
	return cli.On(f, cmd, n.parse, n.open(f), func(ctx context.Context, on fmt.Stringer, l lease.Resource) (cli.Result, error) {
		seen, err := l.Look(ctx, "")
		r := ShownOf(seen, n == "file")
		r.Outcome, r.Resource = "found", on.String()
		return r, err
	})
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

// ShownOf describes a lease; with its holder, if the resource's metadata names it.
func ShownOf(seen lease.Observation, holder bool) Shown {
	r := Shown{State: string(seen.State), Status: "unlocked", Duration: string(seen.Term), ETag: string(seen.ETag)}
	if seen.State.Free() {
		return r
	}
	r.Status = "locked"
	if holder {
		h := files.LeaseInfoOf(seen)
		r.Owner, r.Since, r.Heard = h.Owner, show.Time(h.Since), show.Time(h.Heartbeat)
	}
	return r
}
