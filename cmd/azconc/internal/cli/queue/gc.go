package queue

import (
	"context"
	"fmt"
	"io"
	"time"

	"github.com/spf13/pflag"

	"github.com/azconc/azconc/cmd/azconc/internal/cli"
	"github.com/azconc/azconc/cmd/azconc/internal/cli/fail"
	"github.com/azconc/azconc/cmd/azconc/internal/cli/ref"
	"github.com/azconc/azconc/cmd/azconc/internal/cli/show"
)

type gcOptions struct {
	Queue    string
	Markers  string // table
	Inbox    string // table/partition
	Claims   string // container
	Sessions string // container
	Age      time.Duration

	inbox ref.Table
}

func gcVerb() cli.Verb[gcOptions] {
	return cli.Verb[gcOptions]{
		Use:   "gc <queue>",
		Short: "Delete the records of messages that can no longer be delivered",
		Long: `Delete the records of messages that can no longer be delivered: the markers of the queue and the marks of an inbox a day after
their messages have expired, the sessions of consumers that have died, and bodies in a container whose messages expired longer
ago than --claim-age. For a body that an earlier version stored, or whose message never expires, --claim-age begins when the
body was stored. It is safe while senders and consumers are running.`,
		Example: "  azconc queue gc orders --markers azconcmarkers --inbox orders/eu --claim-check bodies",
		Flags: func(opts *gcOptions, set *pflag.FlagSet) {
			set.StringVar(&opts.Markers, "markers", "", "`table` with the queue's markers")
			set.StringVar(&opts.Inbox, "inbox", "", "`table/partition` that messages were applied to")
			set.StringVar(&opts.Claims, "claim-check", "", "`container` with bodies")
			set.StringVar(&opts.Sessions, "sessions", "", "`container` with sessions")
			set.DurationVar(&opts.Age, "claim-age", 14*24*time.Hour, "delete bodies whose messages expired longer ago than this; longer than poison messages are kept")
		},
		Resource: func(opts *gcOptions, arg string) (err error) { opts.Queue, err = parseQueue(arg); return err },
		Parse: func(opts *gcOptions, in cli.Input) (err error) {
			if opts.Markers == "" && opts.Inbox == "" && opts.Claims == "" && opts.Sessions == "" {
				return fail.WithHint(fail.Usagef("nothing to clean up is given"), "give one or more of --markers, --inbox, --claim-check and --sessions")
			}
			if err := CheckTable("--markers", opts.Markers); err != nil {
				return err
			}
			if opts.Inbox != "" {
				if opts.inbox, err = ref.ParseTable(opts.Inbox, 2); err != nil {
					return err
				}
			}
			if err := checkContainer("--claim-check", opts.Claims); err != nil {
				return err
			}
			if err := checkContainer("--sessions", opts.Sessions); err != nil {
				return err
			}
			if opts.Age < time.Hour {
				return fail.WithHint(fail.Usagef("--claim-age %s is less than 1h", show.Duration(opts.Age)), "it has to be longer than the lifetime of a message that needs its body")
			}
			return nil
		},
		Run: gcRun,
	}
}

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

func gcRun(ctx context.Context, f *cli.Factory, opts *gcOptions) (err error) {
	r := gcResult{Outcome: "deleted", Queue: opts.Queue}
	if opts.Markers != "" {
		k, err := openMarkers(f, opts.Markers)
		if err != nil {
			return err
		}
		if r.Markers, err = k.GC(ctx, opts.Queue); err != nil {
			return err
		}
	}
	if opts.Inbox != "" {
		inbox, err := inbox(f, opts.inbox)
		if err != nil {
			return err
		}
		if r.Inbox, err = inbox.GC(ctx, opts.inbox.Partition); err != nil {
			return err
		}
	}
	if opts.Claims != "" {
		k, err := claimCheck(f, opts.Claims)
		if err != nil {
			return err
		}
		if r.Bodies, err = k.GC(ctx, opts.Age); err != nil {
			return err
		}
	}
	if opts.Sessions != "" {
		k, err := sessions(f, opts.Sessions)
		if err != nil {
			return err
		}
		if r.Sessions, err = k.GC(ctx); err != nil {
			return err
		}
	}
	r.Requests = f.Requests.Load()
	return f.Print(r)
}
