package once

import (
	"context"
	"fmt"
	"io"
	"strings"

	"github.com/spf13/cobra"

	"github.com/azconc/azconc/cmd/azconc/internal/cli"
	"github.com/azconc/azconc/cmd/azconc/internal/cli/flags"
	"github.com/azconc/azconc/cmd/azconc/internal/cli/ref"
	"github.com/azconc/azconc/cmd/azconc/internal/cli/show"
	idem "github.com/azconc/azconc/idempotent/once"
)

type listResult struct {
	Outcome   string     `json:"outcome"`
	Container string     `json:"resource"`
	Keys      []listItem `json:"keys"`
	Unnamed   int        `json:"unnamed"` // results whose keys are not known
	cli.Cost
}

type listItem struct {
	Key   string `json:"resource"`
	State string `json:"state"` // done, running or free
	At    string `json:"at,omitempty"`
	Owner string `json:"owner,omitempty"`
	Since string `json:"since,omitempty"`
	Fence int64  `json:"fence,omitempty"`
}

func (r listResult) Text(w io.Writer) {
	for _, k := range r.Keys {
		when := k.At
		if k.State != "done" {
			when = k.Since
		}
		fmt.Fprintln(w, strings.TrimRight(fmt.Sprintf("%-7s  %-20s  %s  %s", k.State, when, show.Line(k.Key), show.Line(k.Owner)), " "))
	}
}

func newListCmd(f *cli.Factory) *cobra.Command {
	var prefix string
	cmd := &cobra.Command{
		Use:   "list <container>",
		Short: "List the keys of a container and their states",
		Long: `List the keys of a container and their states:

  done     a result is stored: azconc once show prints it, azconc once forget deletes it
  running  a process is working on the key
  free     no result is in --results: the key was tried, or its result was forgotten or is in another
           table; the next azconc once run with this table runs its command

A key that is free is listed until azconc lock gc deletes its lock. For a key that is done, the owner is the last process that had
it. Results whose keys are no longer known, because only their hashes are stored, are counted on stderr.`,
		Example: "  azconc once list jobs\n  azconc once list jobs --prefix deploy- -o json",
	}
	cmd.Flags().StringVar(&prefix, "prefix", "", "only keys that begin with this `text`")
	flags.AllowEmpty(cmd.Flags(), "prefix")
	return on(f, cmd, ref.ParseContainer, func(ctx context.Context, in ref.Blob, o *idem.Once) (cli.Result, error) {
		keys, err := o.List(ctx)
		if err != nil {
			return nil, err
		}
		r := listResult{Outcome: "listed", Container: in.Container, Keys: []listItem{}}
		for _, k := range keys {
			switch {
			case k.Key == "":
				r.Unnamed++
			case strings.HasPrefix(k.Key, prefix):
				r.Keys = append(r.Keys, listed(in.Container, k))
			}
		}
		if r.Unnamed > 0 && !f.JSON() && !f.Quiet {
			f.Notef("and %s of keys that are not known any more", show.Plural(r.Unnamed, "result"))
		}
		r.Cost = f.Cost()
		return r, nil
	})
}

func listed(container string, k idem.KeyInfo) listItem {
	item := listItem{Key: container + "/" + k.Key, State: "free", At: show.Time(k.At), Owner: k.Lock.Owner, Since: show.Time(k.Lock.Since), Fence: int64(k.Lock.Fence)}
	switch {
	case k.Done:
		item.State = "done"
	case k.Lock.Held:
		item.State = "running"
	}
	return item
}
