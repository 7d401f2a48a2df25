package queue

import (
	"context"
	"fmt"
	"io"
	"time"

	"github.com/spf13/cobra"

	"github.com/azconc/azconc/cmd/azconc/internal/cli"
	"github.com/azconc/azconc/cmd/azconc/internal/cli/flags"
	"github.com/azconc/azconc/cmd/azconc/internal/cli/ref"
	"github.com/azconc/azconc/cmd/azconc/internal/cli/show"
	"github.com/azconc/azconc/pkg/azerr"
)

type gcResult struct {
	Outcome  string `json:"outcome"`
	Queue    string `json:"resource"`
	Markers  int    `json:"markers"`
	Inbox    int    `json:"inbox"`
	Bodies   int    `json:"bodies"`
	Requests int64  `json:"requests"`
}

func (r gcResult) Text(w io.Writer) {
	fmt.Fprintf(w, "deleted %s, %s of an inbox, %s\n", show.Plural(r.Markers, "marker"), show.Plural(r.Inbox, "mark"), show.Plural(r.Bodies, "stored message"))
}

// collection names the places that gc collects in.
type collection struct {
	markers string
	inbox   ref.Table
	claims  ref.Blob
	age     time.Duration
}

func newGCCmd(f *cli.Factory) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "gc <queue>",
		Short: "Delete the records of messages that can no longer be delivered",
		Long: `Delete the records of messages that can no longer be delivered: the markers of the queue and the marks of an inbox a day after
their messages have expired, and bodies in a container whose messages expired longer ago than --claim-age. For a body whose message
never expires, --claim-age begins when the body was stored.
Consumers delete expired markers and marks in passing, so that gc is for those of a queue that nobody consumes any more.
It is safe while senders and consumers are running.`,
		Example: "  azconc queue gc orders\n  azconc queue gc orders --markers azconcmarkers --inbox orders/eu --claim-check bodies",
	}
	var c collection
	set := cmd.Flags()
	TableFlag(set, &c.markers, "markers", "`table` with the queue's markers (default "+defaultMarkers+", if nothing else is given)")
	named(set, &c.inbox, "inbox", "`table/partition` that messages were applied to", parseInbox)
	named(set, &c.claims, "claim-check", "`container` with bodies", ref.ParseContainer)
	c.age = 14 * show.Day
	flags.Within(set, &c.age, "claim-age", time.Hour, 0, "delete bodies whose messages expired longer ago than this; longer than poison messages are kept")
	return cli.On(f, cmd, ParseName, noClient, func(ctx context.Context, queue string, _ struct{}) (cli.Result, error) {
		r := gcResult{Outcome: "deleted", Queue: queue}
		if err := c.collect(ctx, f, &r); err != nil {
			return nil, err
		}
		r.Requests = f.Requests.Load()
		return r, nil
	})
}

func (c *collection) collect(ctx context.Context, f *cli.Factory, r *gcResult) error {
	table, all := c.markers, *c == (collection{age: c.age})
	if all {
		table = defaultMarkers
	}
	if table != "" {
		k, err := openMarkers(f, table)
		if err != nil {
			return err
		}
		// Without the table that consumers make by default, there are no markers.
		if r.Markers, err = k.GC(ctx, r.Queue); err != nil && !(all && azerr.Classify(err).Kind == azerr.NotFound) {
			return err
		}
	}
	if c.inbox.Table != "" {
		k, err := openInbox(f, c.inbox, nil)
		if err != nil {
			return err
		}
		if r.Inbox, err = k.GC(ctx, c.inbox.Partition); err != nil {
			return err
		}
	}
	if c.claims.Container != "" {
		k, err := openClaims(f, c.claims)
		if err != nil {
			return err
		}
		if r.Bodies, err = k.GC(ctx, c.age); err != nil {
			return err
		}
	}
	return nil
}
