// Package lease has the verbs of a lease, for blobs, containers, files and shares.
package lease

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/azconc/azconc/cmd/azconc/internal/cli"
	"github.com/azconc/azconc/cmd/azconc/internal/cli/fail"
	"github.com/azconc/azconc/cmd/azconc/internal/cli/flags"
	"github.com/azconc/azconc/cmd/azconc/internal/cli/ref"
	"github.com/azconc/azconc/optimistic"
	"github.com/azconc/azconc/pessimistic"
	"github.com/azconc/azconc/pessimistic/files"
	"github.com/azconc/azconc/pessimistic/manual"
	"github.com/azconc/azconc/pkg/azerr"
	"github.com/azconc/azconc/pkg/lease"
	"github.com/azconc/azconc/pkg/observe"
)

// noun is a kind of resource that can be leased.
type noun struct {
	name, arg, example string
	conditions         flags.ConditionSet // that the service takes on a lease operation, without the lease's own id
	parse              func(string) (fmt.Stringer, error)
	open               func(fmt.Stringer) (lease.Resource, error)
	f                  *cli.Factory
}

// on is what parses and opens the resources of a noun.
func on[R fmt.Stringer](n noun, parse func(string) (R, error), open func(R) (lease.Resource, error)) noun {
	n.parse = func(arg string) (fmt.Stringer, error) { return parse(arg) }
	n.open = func(on fmt.Stringer) (lease.Resource, error) { return open(on.(R)) } //nolint:forcetypeassert // as parsed
	return n
}

// NewCmd is the lease group of a noun: "blob", "container", "file" or "share".
func NewCmd(f *cli.Factory, name string) *cobra.Command {
	n := noun{f: f, name: name}
	switch name {
	case "blob":
		n.arg, n.example, n.conditions = "<container/blob>", "jobs/state.json", flags.CondAll&^flags.CondLease
		n = on(n, ref.ParseWritable, func(on ref.Blob) (lease.Resource, error) {
			client, err := f.Blob(on)
			return pessimistic.NewBlob(client), err
		})
	case "container":
		n.arg, n.example, n.conditions = "<container>", "jobs", flags.CondDates
		n = on(n, ref.ParseContainer, func(on ref.Blob) (lease.Resource, error) {
			client, err := f.Container(on)
			return pessimistic.NewContainer(client), err
		})
	case "file":
		n.arg, n.example = "<share/path>", "jobs/report.csv"
		n = on(n, ref.ParseFile, func(on ref.File) (lease.Resource, error) {
			client, err := f.File(on)
			return files.NewFile(client), err // with a heartbeat: the service does not record the holder, and the lease does not expire
		})
	case "share":
		n.arg, n.example = "<share>", "jobs"
		n = on(n, ref.ParseShare, func(on ref.File) (lease.Resource, error) {
			client, err := f.Share(on)
			return files.NewShare(client), err
		})
	}
	return cli.NewGroupCmd("lease", "Acquire, renew, change, release and break the lease of a "+name,
		n.newAcquireCmd(), n.newRenewCmd(), n.newChangeCmd(), n.newReleaseCmd(), n.newBreakCmd(), n.newShowCmd(),
	)
}

// file reports whether the leases are those of files, which do not expire.
func (n noun) file() bool { return n.name == "file" }

// cmd returns the command of a verb. flags and example are what follows the resource in the usage line, and in the example.
func (n noun) cmd(verb, flags, short, long, example string) *cobra.Command {
	if example != "" {
		example = " " + example
	}
	return &cobra.Command{
		Use: strings.TrimSpace(verb + " " + n.arg + " " + flags), Short: short, Long: long,
		Example: "  azconc " + n.name + " lease " + verb + " " + n.example + example,
	}
}

// call is one call of a verb that changes a lease. It counts the requests whose responses were lost.
type call struct {
	f         *cli.Factory
	op        string // such as "Acquire"
	on        fmt.Stringer
	lease     lease.Resource
	id        string // under which it is held
	options   manual.Options
	ambiguous int
}

// verb makes cmd a verb that changes a lease. check refuses its flags, and do carries it out.
func (n noun) verb(cmd *cobra.Command, op string, check func() error, do func(context.Context, *call) (result, error)) *cobra.Command {
	c := &call{f: n.f, op: op}
	var when optimistic.Conditions
	flags.WriteConditions(cmd.Flags(), &when, n.conditions)
	if check == nil {
		check = func() error { return nil }
	}
	return cli.On(n.f, cmd, cli.Checked(n.parse, check), n.open, func(ctx context.Context, on fmt.Stringer, l lease.Resource) (cli.Result, error) {
		c.on, c.lease = on, l
		c.options = manual.Options{Hooks: observe.Join(n.f.Monitor.Hooks(), c.hooks()), Conditions: lease.Conditions{
			IfMatch: when.IfMatch, IfNoneMatch: when.IfNoneMatch, IfTags: when.IfTags, IfModifiedSince: when.IfModifiedSince, IfUnmodifiedSince: when.IfUnmodifiedSince,
		}}
		r, err := do(ctx, c)
		if err != nil {
			return nil, err
		}
		return c.result(r), nil
	})
}

// holding makes cmd a verb that changes a lease held under the id in --lease-id.
func (n noun) holding(cmd *cobra.Command, op string, do func(context.Context, *call) (result, error)) *cobra.Command {
	id := ""
	flags.LeaseID(cmd.Flags(), &id, "`id` under which it is held")
	flags.Required(cmd.Flags(), "lease-id", "azconc "+n.name+" lease acquire prints the id")
	return n.verb(cmd, op, nil, func(ctx context.Context, c *call) (result, error) {
		c.id = id
		return do(ctx, c)
	})
}

// hooks count the lost responses to the call's own requests: those of the operation, and those of a file's heartbeat, which
// belongs to it.
func (c *call) hooks() observe.Hooks {
	return observe.Hooks{Span: func(ctx context.Context, s observe.Span) (context.Context, func(error)) {
		own := s.Request != nil && (s.Name == c.op+" Lease" || strings.Contains(s.Name, " File "))
		return ctx, func(err error) {
			if own && azerr.Classify(err).Ambiguous() {
				c.ambiguous++
			}
		}
	}}
}

// judge returns the error of a call, without the operation and the resource, which the command line adds to every error.
func judge(err error) error {
	if u, ok := errors.AsType[*pessimistic.UnknownError](err); ok {
		return &fail.UnknownError{Why: "the response was lost", Err: u.Err}
	}
	if e, ok := errors.AsType[*pessimistic.HeldError](err); ok && e.Err != nil {
		return e.Err
	}
	if e, ok := errors.AsType[*pessimistic.LostError](err); ok && azerr.Classify(e.Err).Code != "" {
		return e.Err
	}
	if e, ok := errors.AsType[*azerr.OpError](err); ok {
		return e.Err
	}
	return err
}

// result completes the result of the call.
func (c *call) result(r result) result {
	r.Resource, r.Ambiguous, r.Cost = c.on.String(), c.ambiguous, c.f.Cost()
	return r
}

// result is the result of a lease verb. As text it is the value a script needs next: the id, or the seconds left.
type result struct {
	Outcome     string `json:"outcome"`
	Resource    string `json:"resource"`
	LeaseID     string `json:"lease_id,omitempty"`
	DurationMS  int64  `json:"duration_ms,omitempty"`
	Infinite    bool   `json:"infinite,omitempty"`
	RemainingMS *int64 `json:"remaining_ms,omitempty"`
	ETag        string `json:"etag,omitempty"`
	Ambiguous   int    `json:"ambiguous"`
	cli.Cost
}

func (r result) Text(w io.Writer) {
	switch {
	case r.RemainingMS != nil:
		fmt.Fprintln(w, *r.RemainingMS/1000)
	case r.LeaseID != "":
		fmt.Fprintln(w, r.LeaseID)
	default:
		fmt.Fprintln(w, r.Outcome, r.Resource)
	}
}

// AddDuration adds the flag --duration, for what the service takes: 15 to 60 whole seconds, or "infinite".
func AddDuration(set *pflag.FlagSet, to *time.Duration, byDefault, usage string) {
	parse := func(text string) (time.Duration, error) {
		if text == "infinite" {
			return pessimistic.Infinite, nil
		}
		d, err := flags.ParseDuration(text)
		if err != nil || d < 15*time.Second || d > 60*time.Second || d%time.Second != 0 {
			return 0, fail.WithHint(fail.Usagef("--duration %s is not between 15s and 60s, in whole seconds, nor \"infinite\"", text), "a lease can be renewed for as long as needed")
		}
		return d, nil
	}
	*to, _ = parse(byDefault)
	flags.Text(set, to, "duration", usage, parse)
	set.Lookup("duration").DefValue = byDefault
}
