package lock

import (
	"context"
	"fmt"
	"io"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore"
	"github.com/spf13/pflag"

	"github.com/azconc/azconc/cmd/azconc/internal/cli"
	"github.com/azconc/azconc/cmd/azconc/internal/cli/fail"
	"github.com/azconc/azconc/cmd/azconc/internal/cli/flags"
	"github.com/azconc/azconc/cmd/azconc/internal/cli/ref"
	"github.com/azconc/azconc/cmd/azconc/internal/cli/show"
	"github.com/azconc/azconc/pessimistic"
	"github.com/azconc/azconc/pkg/lease"
)

type breakOptions struct {
	Lock    ref.Blob
	IfMatch azcore.ETag
	Period  time.Duration
	Now     bool
}

func breakVerb() cli.Verb[breakOptions] {
	var ifMatch string
	return cli.Verb[breakOptions]{
		Use:   "break <container/name> [--if-match <etag>] [--period <duration> | --now]",
		Short: "Break a lock that another client holds",
		Long: `Break a lock that another client holds. Breaking a free lock changes nothing.

By default the lease's remaining time runs out first, so that a holder that tracks its time has stopped by then; azconc lock
run sends its command TERM at its next renewal, and KILL before the time is over. With --now the lease ends at once, and the
holder continues until its next renewal: use it only if the holder is known to be gone. --if-match, with the ETag from azconc
lock show, breaks that acquisition and no later one; if there is a new holder by then, the exit code is 4.`,
		Example: "  azconc lock break jobs/nightly\n  azconc lock break jobs/nightly --if-match 0x8DE4A1B2C3D4E5F --now",
		Flags: func(opts *breakOptions, set *pflag.FlagSet) {
			set.StringVar(&ifMatch, "if-match", "", "`etag` of the acquisition to break")
			set.DurationVar(&opts.Period, "period", 0, "how long it may still last at most: 0s to 60s")
			set.BoolVar(&opts.Now, "now", false, "end it at once")
		},
		Resource: func(opts *breakOptions, arg string) (err error) { opts.Lock, err = ParseLock(arg); return err },
		Parse: func(opts *breakOptions, in cli.Input) (err error) {
			if ifMatch != "" {
				if opts.IfMatch, err = flags.ParseETag("--if-match", ifMatch); err != nil {
					return err
				}
			}
			switch {
			case opts.Now && in.Flags.Changed("period"):
				return fail.Usagef("--period and --now cannot both be given")
			case opts.Period < 0 || opts.Period > time.Minute || opts.Period%time.Second != 0:
				return fail.Usagef("--period %s is not between 0s and 60s, in whole seconds", show.Duration(opts.Period))
			case in.Flags.Changed("period") && opts.Period == 0:
				opts.Now = true
			}
			return nil
		},
		Run: breakRun,
	}
}

type breakResult struct {
	Outcome string `json:"outcome"` // broken, breaking or free
	shown
	RemainingMS int64 `json:"remaining_ms"`
	Requests    int64 `json:"requests"`
}

func (r breakResult) Text(w io.Writer) {
	switch r.Outcome {
	case "free":
		fmt.Fprintf(w, "free %s: it was not held\n", r.Lock)
	case "breaking":
		fmt.Fprintf(w, "breaking %s of %s, free in %s\n", r.Lock, show.Line(r.Owner), show.Duration(time.Duration(r.RemainingMS)*time.Millisecond))
	default:
		fmt.Fprintf(w, "broken %s of %s\n", r.Lock, show.Line(r.Owner))
	}
}

func breakRun(ctx context.Context, f *cli.Factory, opts *breakOptions) error {
	r, err := breakOne(ctx, f, opts)
	if err != nil {
		return err
	}
	return f.Print(r)
}

func breakOne(ctx context.Context, f *cli.Factory, opts *breakOptions) (r breakResult, err error) {
	k, err := Locker(f, opts.Lock, nil)
	if err != nil {
		return r, err
	}
	b, err := k.Break(ctx, opts.Lock.Blob, &pessimistic.BreakOptions{Conditions: lease.Conditions{IfMatch: opts.IfMatch}, Now: opts.Now, Grace: opts.Period})
	if err != nil {
		return r, err
	}
	r = breakResult{Outcome: "free", shown: showLock(opts.Lock.Container, b.LockInfo), RemainingMS: b.After.Milliseconds(), Requests: f.Requests.Load()}
	switch {
	case b.Broken && b.After > 0:
		r.Outcome = "breaking"
	case b.Broken:
		r.Outcome = "broken"
	}
	return r, nil
}
