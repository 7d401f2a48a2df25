package tf

import (
	"time"

	"github.com/spf13/cobra"

	"github.com/azconc/azconc/cmd/azconc/internal/cli"
	"github.com/azconc/azconc/cmd/azconc/internal/cli/fail"
	"github.com/azconc/azconc/cmd/azconc/internal/cli/ref"
	"github.com/azconc/azconc/cmd/azconc/internal/cli/show"
	"github.com/azconc/azconc/cmd/azconc/internal/tfstate"
	"github.com/azconc/azconc/pkg/lease"
)

func NewCmd(f *cli.Factory) *cobra.Command {
	return cli.NewGroupCmd("tf", "States of Terraform and OpenTofu, and their locks",
		runVerb().Command(f),
		pushVerb().Command(f),
		showVerb().Command(f),
		unlockVerb().Command(f),
	)
}

// parseState reads container/state.
func parseState(arg string) (ref.Blob, error) {
	r, err := ref.ParseWritable(arg)
	if err != nil && r.Blob == "" && r.Container != "" {
		return r, fail.WithHint(fail.Usagef("%q does not name a state", arg), "a state is named container/key, as container_name and key of an azurerm backend")
	}
	return r, err
}

// shown is a state and its lock as show and unlock print them.
type shown struct {
	State     string `json:"resource"`
	Locked    bool   `json:"locked"`
	Lease     string `json:"state"`
	Infinite  bool   `json:"infinite"`
	ID        string `json:"id,omitempty"`
	Who       string `json:"who,omitempty"`
	Operation string `json:"operation,omitempty"`
	Client    string `json:"version,omitempty"`
	Info      string `json:"info,omitempty"`
	Path      string `json:"path,omitempty"`
	Created   string `json:"created,omitempty"`
	CreatedMS int64  `json:"created_ago_ms,omitempty"`
	Problem   string `json:"problem,omitempty"`
	Modified  string `json:"last_modified"`
	ModMS     int64  `json:"last_modified_ago_ms"`
	Size      int64  `json:"size"`
	ETag      string `json:"etag"`
}

func showState(on ref.Blob, l tfstate.Lock) shown {
	s := shown{
		State: on.String(), Locked: l.Held, Lease: string(l.State), Infinite: l.Infinite(),
		ID: l.Info.ID, Who: l.Info.Who, Operation: l.Info.Operation, Client: l.Info.Version, Info: l.Info.Info, Path: l.Info.Path,
		Modified: show.Time(l.Modified), Size: l.Size, ETag: string(l.ETag),
	}
	if at := l.Info.At(); !at.IsZero() {
		s.Created = show.Time(at)
		s.CreatedMS = max(0, l.Date.Sub(at).Milliseconds())
	}
	if l.Held && l.Problem != nil {
		s.Problem = l.Problem.Error()
	}
	s.ModMS = max(0, l.Date.Sub(l.Modified).Milliseconds())
	return s
}

// ago returns how long ago something was, in whole seconds.
func ago(ms int64) string {
	return (time.Duration(ms) * time.Millisecond).Round(time.Second).String() + " ago"
}

// locked says whether there is a lock, and whether it ends by itself.
func (s shown) locked() string {
	switch {
	case !s.Locked:
		return "no, " + s.Lease
	case s.Lease == string(lease.Breaking):
		return "yes, being broken"
	case s.Infinite:
		return "yes, until it is released: it does not end by itself"
	}
	return "yes, and it ends by itself when its holder is gone"
}
