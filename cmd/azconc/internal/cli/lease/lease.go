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
	"github.com/azconc/azconc/pkg/ptr"
)

// NewCmd is the lease group of a noun, "blob", "container", "file" or "share".
func NewCmd(f *cli.Factory, noun string) *cobra.Command {
	n := leaseNoun(noun)
	return cli.NewGroupCmd("lease", "Acquire, renew, change, release and break the lease of a "+noun,
		n.newAcquireCmd(f), n.newRenewCmd(f), n.newChangeCmd(f), n.newReleaseCmd(f), n.newBreakCmd(f), n.newShowCmd(f),
	)
}

// leaseNoun is the kind of resource that is leased.
type leaseNoun string

func (n leaseNoun) arg() string {
	switch n {
	case "container", "share":
		return "<" + string(n) + ">"
	case "file":
		return "<share/path>"
	}
	return "<container/blob>"
}

func (n leaseNoun) example() string {
	switch n {
	case "container", "share":
		return "jobs"
	case "file":
		return "jobs/report.csv"
	}
	return "jobs/state.json"
}

func (n leaseNoun) parse(arg string) (fmt.Stringer, error) {
	switch n {
	case "container":
		return ref.ParseContainer(arg)
	case "share":
		return ref.ParseShare(arg)
	case "file":
		return ref.ParseFile(arg)
	}
	return ref.ParseWritable(arg)
}

// conditions are those that the service takes on a lease operation: all but the lease's own id, only dates for a
// container, and none in Azure Files.
func (n leaseNoun) conditions() flags.ConditionSet {
	switch n {
	case "container":
		return flags.CondDates
	case "file", "share":
		return 0
	}
	return flags.CondAll &^ flags.CondLease
}

// open returns what opens a resource.
func (n leaseNoun) open(f *cli.Factory) func(fmt.Stringer) (lease.Resource, error) {
	return func(on fmt.Stringer) (lease.Resource, error) {
		switch n {
		case "file":
			client, err := f.File(on.(ref.File))
			return files.NewFile(client), err // with a heartbeat: the service does not record the holder, and the lease does not expire
		case "share":
			client, err := f.Share(on.(ref.File))
			return files.NewShare(client), err
		case "container":
			client, err := f.Container(on.(ref.Blob))
			return pessimistic.NewContainer(client), err
		}
		client, err := f.Blob(on.(ref.Blob))
		return pessimistic.NewBlob(client), err
	}
}

// call is one call of a verb that changes a lease. It counts the requests whose responses were lost.
type call struct {
	f          *cli.Factory
	op         string // such as "Acquire"
	on         fmt.Stringer
	lease      lease.Resource
	conditions optimistic.Conditions
	ambiguous  int
}

// verb makes cmd a verb that changes a lease. check refuses its flags, and do carries it out.
func (n leaseNoun) verb(f *cli.Factory, cmd *cobra.Command, op string, check func() error, do func(context.Context, *call) (result, error)) *cobra.Command {
	c := &call{f: f, op: op}
	flags.WriteConditions(cmd.Flags(), &c.conditions, n.conditions())
	parse := func(arg string) (fmt.Stringer, error) {
		on, err := n.parse(arg)
		if err != nil {
			return nil, err
		}
		return on, check()
	}
	return cli.On(f, cmd, parse, n.open(f), func(ctx context.Context, on fmt.Stringer, l lease.Resource) (cli.Result, error) {
		c.on, c.lease = on, l
		r, err := do(ctx, c)
		if err != nil {
			return nil, err
		}
		return c.result(r), nil
	})
}

// holding makes cmd a verb that changes a lease held under the id in --lease-id.
func (n leaseNoun) holding(f *cli.Factory, cmd *cobra.Command, op string, check func() error, do func(ctx context.Context, c *call, id string) (result, error)) *cobra.Command {
	id := cmd.Flags().String("lease-id", "", "`id` under which it is held")
	given := func() (err error) {
		if *id == "" {
			return fail.WithHint(fail.Usagef("--lease-id is missing"), "azconc … lease acquire prints the id")
		}
		if *id, err = flags.ParseLeaseID(*id); err != nil {
			return err
		}
		return check()
	}
	return n.verb(f, cmd, op, given, func(ctx context.Context, c *call) (result, error) { return do(ctx, c, *id) })
}

// options returns the options of the call's requests.
func (c *call) options() manual.Options {
	return manual.Options{Conditions: c.leaseConditions(), Hooks: c.hooks()}
}

func (c *call) leaseConditions() lease.Conditions {
	return lease.Conditions{
		IfMatch: c.conditions.IfMatch, IfNoneMatch: c.conditions.IfNoneMatch, IfTags: c.conditions.IfTags,
		IfModifiedSince: c.conditions.IfModifiedSince, IfUnmodifiedSince: c.conditions.IfUnmodifiedSince,
	}
}

// hooks count the lost responses to the call's own requests: those of the operation, and those of a file's heartbeat, which
// belongs to it.
func (c *call) hooks() observe.Hooks {
	return observe.Hooks{Span: func(ctx context.Context, s observe.Span) (context.Context, func(error)) {
		own := s.Request && (s.Name == c.op+" Lease" || strings.Contains(s.Name, " File "))
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

// ParseDuration reads a duration that the service takes: 15 to 60 whole seconds, or "infinite".
func ParseDuration(flag, s string) (time.Duration, error) {
	if s == "infinite" {
		return pessimistic.Infinite, nil
	}
	d, err := flags.ParseDuration(s)
	if err != nil || d < 15*time.Second || d > 60*time.Second || d%time.Second != 0 {
		return 0, fail.WithHint(fail.Usagef("%s %s is not between 15s and 60s, in whole seconds, nor \"infinite\"", flag, s), "a lease can be renewed for as long as needed")
	}
	return d, nil
}

func Text[S ~string](s *S) string { return string(ptr.Value(s)) }
