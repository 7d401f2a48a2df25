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
		fmt.Fprintln(w, strings.TrimRight(fmt.Sprintf("%-7s  %-20s  %s  %s", k.State, when, show.Name(k.Key), show.Line(k.Owner)), " "))
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
  free     no result is in --results, but the key was tried, or its result is in another table; the next
           azconc once run with this table runs its command

A key that is free is listed until azconc lock gc deletes its lock. A key that is done has neither lock nor owner, unless it shares
its lock with others.`,
		Example: "  azconc once list jobs\n  azconc once list jobs --prefix deploy- -o json",
	}
	flags.Prefix(cmd.Flags(), &prefix)
	return on(f, cmd, ref.ParseContainer, func(ctx context.Context, in ref.Blob, o *idem.Once) (cli.Result, error) {
		keys, err := o.List(ctx)
		if err != nil {
			return nil, err
		}
		r := listResult{Outcome: "listed", Container: in.Container, Keys: []listItem{}}
		for _, k := range keys {
			if strings.HasPrefix(k.Key, prefix) {
				r.Keys = append(r.Keys, listed(in.Container, k))
			}
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
