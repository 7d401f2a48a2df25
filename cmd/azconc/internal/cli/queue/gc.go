package queue

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"time"

	"github.com/spf13/cobra"

	"github.com/azconc/azconc/cmd/azconc/internal/cli"
	"github.com/azconc/azconc/cmd/azconc/internal/cli/fail"
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
	Sessions int    `json:"sessions"`
	Requests int64  `json:"requests"`
}

func (r gcResult) Text(w io.Writer) {
	fmt.Fprintf(w, "deleted %s, %s of an inbox, %s, %s\n", show.Plural(r.Markers, "marker"), show.Plural(r.Inbox, "mark"), show.Plural(r.Bodies, "stored message"), show.Plural(r.Sessions, "session"))
}

func newGCCmd(f *cli.Factory) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "gc <queue>",
		Short: "Delete the records of messages that can no longer be delivered",
		Long: `Delete the records of messages that can no longer be delivered: the markers of the queue and the marks of an inbox a day after
their messages have expired, the sessions of consumers that have died, and bodies in a container whose messages expired longer
ago than --claim-age. For a body whose message never expires, --claim-age begins when the body was stored.
Consumers delete expired markers in passing, so that gc is for those of a queue that nobody consumes any more.
It is safe while senders and consumers are running.`,
		Example: "  azconc queue gc orders\n  azconc queue gc orders --markers azconcmarkers --inbox orders/eu --claim-check bodies",
	}
	markers := cmd.Flags().String("markers", "", "`table` with the queue's markers (default "+defaultMarkers+", if nothing else is given)")
	partition := cmd.Flags().String("inbox", "", "`table/partition` that messages were applied to")
	claims := cmd.Flags().String("claim-check", "", "`container` with bodies")
	dead := cmd.Flags().String("sessions", "", "`container` with sessions")
	age := cmd.Flags().Duration("claim-age", 14*24*time.Hour, "delete bodies whose messages expired longer ago than this; longer than poison messages are kept")
	var applied ref.Table
	named := true // the table with the markers
	parse := func(arg string) (queue string, err error) {
		if queue, err = parseQueue(arg); err != nil {
			return "", err
		}
		if *markers == "" && *partition == "" && *claims == "" && *dead == "" {
			*markers, named = defaultMarkers, false
		}
		if *partition != "" {
			applied, err = ref.ParseTable(*partition, 2)
		}
		err = cmp.Or(CheckTable("--markers", *markers), err, checkContainer("--claim-check", *claims), checkContainer("--sessions", *dead))
		if err == nil && *age < time.Hour {
			err = fail.WithHint(fail.Usagef("--claim-age %s is less than 1h", show.Duration(*age)), "it has to be longer than the lifetime of a message that needs its body")
		}
		return queue, err
	}
	noClient := func(string) (struct{}, error) { return struct{}{}, nil } // which services are needed, the flags say
	return cli.On(f, cmd, parse, noClient, func(ctx context.Context, queue string, _ struct{}) (_ cli.Result, err error) {
		r := gcResult{Outcome: "deleted", Queue: queue}
		if *markers != "" {
			k, err := openMarkers(f, *markers)
			if err != nil {
				return nil, err
			}
			// Without the table that consumers make by default, there are no markers.
			if r.Markers, err = k.GC(ctx, queue); err != nil && (named || azerr.Classify(err).Kind != azerr.NotFound) {
				return nil, err
			}
		}
		if *partition != "" {
			inbox, err := inbox(f, applied, nil)
			if err != nil {
				return nil, err
			}
			if r.Inbox, err = inbox.GC(ctx, applied.Partition); err != nil {
				return nil, err
			}
		}
		if *claims != "" {
			k, err := claimCheck(f, *claims)
			if err != nil {
				return nil, err
			}
			if r.Bodies, err = k.GC(ctx, *age); err != nil {
				return nil, err
			}
		}
		if *dead != "" {
			k, err := sessions(f, *dead)
			if err != nil {
				return nil, err
			}
			if r.Sessions, err = k.GC(ctx); err != nil {
				return nil, err
			}
		}
		r.Requests = f.Requests.Load()
		return r, nil
	})
}
