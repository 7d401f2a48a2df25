package lease

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/azconc/azconc/pkg/ptr"

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

// NewCmd is the lease group of a noun, "blob", "container", "file" or "share".
func NewCmd(f *cli.Factory, noun string) *cobra.Command {
	n := leaseNoun(noun)
	return cli.NewGroupCmd("lease", "Acquire, renew, change, release and break the lease of a "+noun,
		n.acquireVerb().Command(f),
		n.renewVerb().Command(f),
		n.changeVerb().Command(f),
		n.releaseVerb().Command(f),
		n.breakVerb().Command(f),
		n.showVerb().Command(f),
	)
}

// options are those of every verb.
type options struct {
	On         fmt.Stringer
	LeaseID    string
	Conditions optimistic.Conditions
}

// addHeld adds the flags of a verb that needs the lease's id.
func (n leaseNoun) addHeld(o *options, set *pflag.FlagSet) {
	set.StringVar(&o.LeaseID, "lease-id", "", "`id` under which it is held")
	flags.WriteConditions(set, &o.Conditions, n.conditions())
}

// parseHeld parses the options of a verb that needs the lease's id.
func (n leaseNoun) parseHeld(o *options, in cli.Input) (err error) {
	if o.On, err = n.parse(in.Args[0]); err != nil {
		return err
	}
	o.LeaseID, err = requiredLeaseID("--lease-id", o.LeaseID)
	return err
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

// open returns the resource that on names.
func (n leaseNoun) open(f *cli.Factory, on fmt.Stringer) (lease.Resource, error) {
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

// tally counts the requests of a verb whose responses were lost.
type tally struct {
	op        string // such as "Acquire"
	ambiguous int
}

// options returns the options of the verb's requests.
func (t *tally) options(c optimistic.Conditions) manual.Options {
	return manual.Options{Conditions: conditionsOf(c), Hooks: t.hooks()}
}

func conditionsOf(c optimistic.Conditions) lease.Conditions {
	return lease.Conditions{
		IfMatch: c.IfMatch, IfNoneMatch: c.IfNoneMatch, IfTags: c.IfTags,
		IfModifiedSince: c.IfModifiedSince, IfUnmodifiedSince: c.IfUnmodifiedSince,
	}
}

// hooks count the lost responses to the verb's own requests: those of the operation, and those of a file's heartbeat, which
// belongs to it.
func (t *tally) hooks() observe.Hooks {
	return observe.Hooks{Span: func(ctx context.Context, s observe.Span) (context.Context, func(error)) {
		own := s.Request && (s.Name == t.op+" Lease" || strings.Contains(s.Name, " File "))
		return ctx, func(err error) {
			if own && azerr.Classify(err).Ambiguous() {
				t.ambiguous++
			}
		}
	}}
}

// judge returns the error of a verb, without the operation and the resource, which the command line adds to every error.
func (t *tally) judge(err error) error {
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

func (t *tally) print(f *cli.Factory, r result) error {
	r.Ambiguous, r.Requests, r.ElapsedMS = t.ambiguous, f.Requests.Load(), time.Since(f.Began).Milliseconds()
	return f.Print(r)
}

func Text[S ~string](s *S) string { return string(ptr.Value(s)) }

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

// requiredLeaseID reads an id without which the verb makes no sense.
func requiredLeaseID(flag, s string) (string, error) {
	if s == "" {
		return "", fail.WithHint(fail.Usagef("%s is missing", flag), "azconc … lease acquire prints the id")
	}
	return flags.ParseLeaseID(s)
}
