// Package doctor examines the way to an account and what the account permits, and names the way out of what it finds.
package doctor

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/azconc/azconc/cmd/azconc/internal/azaccount"
	"github.com/azconc/azconc/cmd/azconc/internal/cli"
	"github.com/azconc/azconc/cmd/azconc/internal/cli/fail"
	"github.com/azconc/azconc/cmd/azconc/internal/cli/flags"
	"github.com/azconc/azconc/cmd/azconc/internal/cli/queue"
	"github.com/azconc/azconc/cmd/azconc/internal/cli/ref"
	"github.com/azconc/azconc/cmd/azconc/internal/cli/show"
	"github.com/azconc/azconc/pkg/azerr"
)

type options struct {
	Container ref.Blob // empty without an argument
	Queue     string
	Table     string
	ReadOnly  bool
	For       string // a verb
}

// NewCmd returns azconc doctor.
func NewCmd(f *cli.Factory) *cobra.Command { return newCmd(f, machine{}) }

func newCmd(f *cli.Factory, on network) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "doctor [<container>] [flags]",
		Short: "Find out why an account does not work as expected",
		Long: `Examine the way to the account and what the account permits, and print the way out of each problem.

Without a container: the account and its credential, names, proxies, who ends TLS, the answers of the Blob, Queue, Table and File
services, the round trip, the clock of this machine, and the features of the account that matter for concurrency. No check waits
for longer than 15 s, and what a service that does not answer would be asked next is left out.

With a container also: reading, listing, writing under conditions, leasing and deleting. That creates a blob whose name begins
with azconc-doctor-, and deletes it; if the deletion is not permitted, the name of the blob is printed. --read-only leaves that
out. --queue and --table examine those too, with reads alone. --for prints the rights that a verb needs, and compares them with
those of a SAS.

What the service shows only in Azure's management API is not visible from here: network rules (but for their refusals), whether
versions are kept (but for a write), and roles.

A check is printed when it ends. The first failure is the cause, and what follows from it is marked, without a cure of its own. With
-o json the cause is the first of the checks.
The exit code is 1 if a check has failed. Warnings do not change it.`,
		Example: `  azconc doctor
  azconc doctor jobs --queue orders --table orders
  azconc doctor --for "queue consume" --queue orders
  azconc doctor jobs --read-only -o json`,
		Args: cobra.MaximumNArgs(1),
	}
	set, opts := cmd.Flags(), options{}
	queue.NameFlag(set, &opts.Queue, "queue", "examine this `queue` too")
	queue.TableFlag(set, &opts.Table, "table", "examine this `table` too")
	flags.Text(set, &opts.For, "for", "also examine what this `verb` needs, such as \"queue consume\"", parseVerb)
	set.BoolVar(&opts.ReadOnly, "read-only", false, "write nothing")
	parse := func() (_ options, err error) {
		switch {
		case set.NArg() == 1:
			opts.Container, err = ref.ParseContainer(set.Arg(0))
		case opts.ReadOnly:
			err = fail.Usagef("--read-only does not apply without a container: nothing is written then")
		}
		return opts, err
	}
	return cli.OnAccount(f, cmd, parse, func(ctx context.Context, opts options) (cli.Result, error) {
		p := &patient{f: f, opts: opts, network: on, ended: func() bool { return ctx.Err() != nil }}
		p.examine(ctx)
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		return p.conclude()
	})
}

// Status is how a check ended.
type status string

const (
	ok      status = "ok"
	warning status = "warning" // it works, with a limit that a user should know
	failed  status = "failed"
)

// finding is the result of a check.
type finding struct {
	Check  string `json:"check"`
	Status status `json:"status"`
	Found  string `json:"found"`
	Cure   string `json:"cure,omitempty"`

	// Follows is whether another failure explains this one: the one that is the cause.
	Follows bool `json:"follows,omitempty"`

	// blocked is whether the way, or the clock, may have kept the service from carrying out the request.
	blocked bool
}

// way are the checks of what is between a command and the service. Each is made before the requests that its failure would block.
var way = []string{"proxy", "name", "tls", "intermediary", "clock"}

// follows reports whether an earlier failure explains f: it blocks the way, or has the same reason. Something that changes responses
// does not explain a missing permission.
func (f finding) follows(cause finding) bool {
	return f.blocked && slices.Contains(way, cause.Check) || f.Found == cause.Found || f.Cure == cause.Cure && f.Cure != ""
}

// widest is as wide as the longest name of a check.
const widest = len("blob put --if-match")

// Text prints a line, and another one with what to do about a failure that nothing else explains.
func (f finding) Text(w io.Writer) {
	found, cure := f.Found, f.Cure
	if f.Follows {
		found, cure = "follows: "+found, ""
	}
	fmt.Fprintf(w, "%-8s %-*s  %s\n", f.Status, widest, f.Check, found)
	if cure != "" {
		fmt.Fprintf(w, "%-8s %-*s  do: %s\n", "", widest, "", cure)
	}
}

// patient is an examination.
type patient struct {
	f       *cli.Factory
	opts    options
	network network
	ended   func() bool // by a signal or --timeout: what fails then is no finding

	findings []finding
	cause    finding         // the first failure
	unseen   error           // of printing
	accepted bool            // a request has succeeded: what signs requests is right
	ahead    []time.Duration // of the service's clock: that of this machine, by each response
}

// add reports what a check has found.
func (p *patient) add(check string, s status, cure, format string, args ...any) {
	p.note(finding{Check: check, Status: s, Found: fmt.Sprintf(format, args...), Cure: cure})
}

// note keeps a finding, once: many responses may show it. Text is printed as it comes, since a check may wait for long.
func (p *patient) note(f finding) {
	seen := func(before finding) bool { return before.Check == f.Check && before.Found == f.Found }
	if p.ended() || slices.ContainsFunc(p.findings, seen) {
		return
	}
	switch {
	case f.Status != failed:
	case p.cause.Check == "":
		p.cause = f
	default:
		f.Follows = f.follows(p.cause)
	}
	p.findings = append(p.findings, f)
	if p.f.Text() {
		p.unseen = cmp.Or(p.unseen, p.f.Print(f))
	}
}

// refused adds the failure of a request. That of a proxy, or of TLS, is one of the way.
func (p *patient) refused(check, on string, err error) {
	f := finding{Check: check, Status: failed, blocked: unanswered(err) || p.cause.Check == "clock" && azerr.Has(err, "AuthenticationFailed")}
	layer := ""
	if why, _ := azerr.Explain(err); p.accepted && strings.Contains(why, "account key") {
		p.add("intermediary", failed, keptCure, "%s was refused for its signature, and others were not: something in between changes what is signed, such as If-Match", check)
		return
	}
	if layer, f.Found, f.Cure = onTheWay(err); f.Found == "" {
		v := fail.Judge(err)
		f.Found, f.Cure = fail.Message(err, v, check, on), fail.Hint(err, v, check, on)
	}
	if layer != "" && layer != p.cause.Check {
		p.add(layer, failed, f.Cure, "%s", f.Found)
	}
	p.note(f)
}

// unanswered reports whether a request has no response of the service.
func unanswered(err error) bool { return foreign(err) != nil || azerr.Classify(err).Status == 0 }

// examine makes all checks. A check that needs an earlier one that failed is left out.
func (p *patient) examine(ctx context.Context) {
	account := p.account()
	if account == nil {
		return
	}
	p.rights(account)
	services := map[azaccount.Service]func(context.Context){azaccount.Blob: p.blobs, azaccount.Queue: p.queues, azaccount.Table: p.tables, azaccount.File: p.files}
	for _, s := range p.reach(ctx, account) {
		services[s](ctx)
	}
}

type result struct {
	Outcome  string    `json:"outcome"`
	Cause    string    `json:"cause,omitempty"` // the check that failed first, nearest to this machine
	Checks   []finding `json:"checks"`
	Failed   int       `json:"failed"`
	Warnings int       `json:"warnings"`
	cli.Cost
}

// Text prints the count. The checks have been printed.
func (r result) Text(w io.Writer) {
	fmt.Fprintf(w, "%s, none failed, %s\n", show.Plural(len(r.Checks), "check"), show.Plural(r.Warnings, "warning"))
}

// conclude returns the result, with the cause first.
func (p *patient) conclude() (cli.Result, error) {
	r := result{Outcome: "healthy", Cause: p.cause.Check, Checks: p.findings, Cost: p.f.Cost()}
	if at := slices.Index(r.Checks, p.cause); at > 0 {
		r.Checks = slices.Insert(slices.Delete(r.Checks, at, at+1), 0, p.cause)
	}
	for _, c := range r.Checks {
		switch c.Status {
		case failed:
			r.Failed++
		case warning:
			r.Warnings++
		}
	}
	if r.Failed == 0 || p.unseen != nil {
		return r, p.unseen
	}
	if !p.f.JSON() && !p.f.Text() { // the object of the error has them in JSON
		if err := p.f.Print(r); err != nil {
			return nil, err
		}
	}
	unhealthy := fmt.Errorf("%d of %d checks failed; the cause: %s: %s", r.Failed, len(r.Checks), r.Cause, r.Checks[0].Found)
	return nil, fail.WithFacts(unhealthy, map[string]any{
		"cause": r.Cause, "checks": r.Checks, "failed": r.Failed, "warnings": r.Warnings, "requests": r.Requests, "elapsed_ms": r.ElapsedMS,
	})
}
