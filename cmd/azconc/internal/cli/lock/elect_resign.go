package lock

import (
	"context"
	"fmt"
	"io"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore"
	"github.com/spf13/pflag"

	"github.com/azconc/azconc/cmd/azconc/internal/cli"
	"github.com/azconc/azconc/cmd/azconc/internal/cli/flags"
	"github.com/azconc/azconc/cmd/azconc/internal/cli/ref"
	"github.com/azconc/azconc/cmd/azconc/internal/cli/show"
	"github.com/azconc/azconc/pessimistic"
	"github.com/azconc/azconc/pkg/lease"
)

type resignOptions struct {
	Name    ref.Blob
	IfMatch azcore.ETag
}

func electResignVerb() cli.Verb[resignOptions] {
	return cli.Verb[resignOptions]{
		Use:   "resign <container/name> [--if-match <etag>]",
		Short: "Make the leader step down",
		Long: `Make the leader step down, on whichever machine it is. Without a leader nothing changes.

The leader's lease is broken in such a way that its remaining time runs out first. The leader notices at its next renewal, within
a third of the lease: azconc elect run sends its command TERM, and KILL before the time is over, so no other candidate leads
before the command has ended. It then runs for election again, unless it was started with --once, and may win again.

The ETag from azconc elect show, as --if-match, ends that term and no later one; if there is a new leader by then, the exit
code is 4.`,
		Example: "  azconc elect resign jobs/scheduler",
		Flags: func(opts *resignOptions, set *pflag.FlagSet) {
			flags.ETag(set, &opts.IfMatch, "if-match", "`etag` of the term to end")
		},
		Resource: func(opts *resignOptions, arg string) (err error) { opts.Name, err = ParseLock(arg); return err },
		Run:      electResignRun,
	}
}

type resignResult struct {
	Outcome string `json:"outcome"` // resigning, resigned or free
	shown
	RemainingMS int64 `json:"remaining_ms"`
	Requests    int64 `json:"requests"`
}

func (r resignResult) Text(w io.Writer) {
	switch r.Outcome {
	case "free":
		fmt.Fprintf(w, "free %s: nobody leads\n", r.Lock)
	case "resigning":
		fmt.Fprintf(w, "resigning %s of %s, over in %s\n", r.Lock, show.Line(r.Owner), show.Duration(time.Duration(r.RemainingMS)*time.Millisecond))
	default:
		fmt.Fprintf(w, "resigned %s of %s\n", r.Lock, show.Line(r.Owner))
	}
}

// endlessGrace is how long the leader under an infinite lease has to stop. It renews every 10 s, and would not know of a break
// that left it no time. It is the longest that the service accepts (REST: "Lease Blob").
const endlessGrace = time.Minute

func electResignRun(ctx context.Context, f *cli.Factory, opts *resignOptions) error {
	k, err := Locker(f, opts.Name, nil)
	if err != nil {
		return err
	}
	info, err := leader(ctx, k, opts.Name)
	if err != nil {
		return err
	}
	r := resignResult{Outcome: "free"}
	broken := pessimistic.BreakResult{LockInfo: info}
	if info.Held || opts.IfMatch != "" { // a break refuses a term that is over
		o := pessimistic.BreakOptions{Conditions: lease.Conditions{IfMatch: info.ETag}}
		if opts.IfMatch != "" {
			o.IfMatch = opts.IfMatch
		}
		if info.Duration == pessimistic.Infinite {
			o.Grace = endlessGrace
		}
		if broken, err = k.Break(ctx, opts.Name.Blob, &o); err != nil {
			return err
		}
	}
	switch {
	case broken.Broken && broken.After > 0:
		r.Outcome = "resigning"
	case broken.Broken:
		r.Outcome = "resigned"
	}
	r.shown, r.RemainingMS, r.Requests = showLock(opts.Name.Container, broken.LockInfo), broken.After.Milliseconds(), f.Requests.Load()
	return f.Print(r)
}
