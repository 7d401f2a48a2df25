package tf

import (
	"context"
	"io"

	"github.com/azconc/azconc/cmd/azconc/internal/cli"
	"github.com/azconc/azconc/cmd/azconc/internal/cli/ref"
	"github.com/azconc/azconc/cmd/azconc/internal/cli/show"
	"github.com/azconc/azconc/cmd/azconc/internal/tfstate"
)

type showOptions struct {
	State ref.Blob
}

func showVerb() cli.Verb[showOptions] {
	return cli.Verb[showOptions]{
		Use:   "show <container/state>",
		Short: "Show who holds the lock of a state, and since when",
		Long: `Show who holds the lock of a Terraform or OpenTofu state, since when and with which ID, as the azurerm backend and azconc tf
run store it.

Since when is shown twice, because either clock may be wrong: by the clock of the holder's machine (created), and by that of the
service (last modified), which is when the state was locked or, if later, when it was last written.

The state of a workspace has the name of the workspace after its own: prod.tfstateenv:eu is workspace eu of prod.tfstate.`,
		Example: `  azconc tf show tfstate/prod.tfstate
  azconc tf show tfstate/prod.tfstate -o json | jq -r .id`,
		Resource: func(opts *showOptions, arg string) (err error) { opts.State, err = parseState(arg); return err },
		Run:      showRun,
	}
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
	show.Fields(w, "state", r.State, "locked", r.locked(), who, r.Who, "id", r.ID, "operation", r.Operation, "version", r.Client,
		"info", r.Info, "path", r.Path, "problem", r.Problem, "created", created, "last modified", r.Modified+", "+ago(r.ModMS), "etag", r.ETag)
}

func showRun(ctx context.Context, f *cli.Factory, opts *showOptions) error {
	client, err := f.Blob(opts.State)
	if err != nil {
		return err
	}
	l, err := tfstate.Look(ctx, client)
	if err != nil {
		return err
	}
	return f.Print(showResult{Outcome: "found", shown: showState(opts.State, l)})
}
