// Package tf has the commands for states of Terraform and OpenTofu: azconc tf.
package tf

import (
	"context"
	"io"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/storage/azblob/blob"
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
		newRunCmd(f),
		newShowCmd(f),
		newUnlockCmd(f),
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
	Created   string `json:"created,omitempty"`
	CreatedMS int64  `json:"created_ago_ms,omitempty"`
	Problem   string `json:"problem,omitempty"`
	Modified  string `json:"last_modified"`
	ModMS     int64  `json:"last_modified_ago_ms"`
	ETag      string `json:"etag"`
}

func showState(on ref.Blob, l tfstate.Lock) shown {
	s := shown{
		State: on.String(), Locked: l.Held, Lease: string(l.State), Infinite: l.Infinite(), ID: l.Info.ID, Who: l.Info.Who,
		Operation: l.Info.Operation, Modified: show.Time(l.Modified), ModMS: max(0, l.Date.Sub(l.Modified).Milliseconds()), ETag: string(l.ETag),
	}
	if at := l.Info.At(); !at.IsZero() {
		s.Created = show.Time(at)
		s.CreatedMS = max(0, l.Date.Sub(at).Milliseconds())
	}
	if l.Held && l.Problem != nil {
		s.Problem = l.Problem.Error()
	}
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

type showResult struct {
	Outcome string `json:"outcome"`
	shown
}

// Text prints the lock. The description is the holder's, or that of the last one that did not unlock.
func (r showResult) Text(w io.Writer) {
	who, created := "holder", ""
	if !r.Locked {
		who = "last holder"
	}
	if r.Created != "" {
		created = r.Created + ", " + ago(r.CreatedMS)
	}
	show.Fields(w, "state", r.State, "locked", r.locked(), who, r.Who, "id", r.ID, "operation", r.Operation, "problem", r.Problem,
		"created", created, "last modified", r.Modified+", "+ago(r.ModMS), "etag", r.ETag)
}

func newShowCmd(f *cli.Factory) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "show <container/state>",
		Short: "Show who holds the lock of a state, and since when",
		Long: `Show who holds the lock of a Terraform or OpenTofu state, since when and with which ID, as the azurerm backend and azconc tf
run store it.

Since when is shown twice, because either clock may be wrong: by the clock of the holder's machine (created), and by that of the
service (last modified), which is when the state was locked or, if later, when it was last written.

The state of a workspace has the name of the workspace after its own: prod.tfstateenv:eu is workspace eu of prod.tfstate.`,
		Example: `  azconc tf show tfstate/prod.tfstate
  azconc tf show tfstate/prod.tfstate -o json | jq -r .id`,
	}
	return cli.On(f, cmd, parseState, f.Blob, func(ctx context.Context, on ref.Blob, client *blob.Client) (cli.Result, error) {
		l, err := tfstate.Look(ctx, client)
		return showResult{Outcome: "found", shown: showState(on, l)}, err
	})
}
