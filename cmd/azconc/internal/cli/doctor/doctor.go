// Package doctor examines the way to an account and what the account permits, and names the way out of what it finds.
package doctor

import (
	"context"
	"fmt"
	"io"
	"slices"
	"time"

	"github.com/spf13/cobra"

	"github.com/azconc/azconc/cmd/azconc/internal/azaccount"
	"github.com/azconc/azconc/cmd/azconc/internal/cli"
	"github.com/azconc/azconc/cmd/azconc/internal/cli/fail"
	"github.com/azconc/azconc/cmd/azconc/internal/cli/queue"
	"github.com/azconc/azconc/cmd/azconc/internal/cli/ref"
	"github.com/azconc/azconc/cmd/azconc/internal/cli/show"
)

type options struct {
	Container ref.Blob // empty without an argument
	Queue     string
	Table     string
	ReadOnly  bool
}

// NewCmd returns azconc doctor.
func NewCmd(f *cli.Factory) *cobra.Command { return newCmd(f, machine{}) }

func newCmd(f *cli.Factory, on network) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "doctor [<container>] [flags]",
		Short: "Find out why an account does not work as expected",
		Long: `Examine the way to the account and what the account permits, and print the way out of each problem.

Without a container: the account and its credential, names, proxies, who ends TLS, the answers of the Blob, Queue, Table and File
services, the round trip, the clock of this machine, and the features of the account that matter for concurrency. No request waits
for longer than 15 s.

With a container also: reading, listing, writing under conditions, leasing and deleting. That creates a blob whose name begins
with azconc-doctor-, and deletes it; if the deletion is not permitted, the name of the blob is printed. --read-only leaves that
out. --queue and --table examine those too, with reads alone.

What the service shows only in Azure's management API is not visible from here: network rules (but for their refusals), whether
versions are kept (but for a write), and roles.

The cause comes first: the failure that is nearest to this machine. What follows from it is marked, without a cure of its own.
The exit code is 1 if a check has failed. Warnings do not change it.`,
		Example: `  azconc doctor
  azconc doctor jobs --queue orders --table orders
  azconc doctor jobs --read-only -o json`,
		Args: cobra.MaximumNArgs(1),
	}
	set, opts := cmd.Flags(), options{}
	queue.NameFlag(set, &opts.Queue, "queue", "examine this `queue` too")
	queue.TableFlag(set, &opts.Table, "table", "examine this `table` too")
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
		p := &patient{f: f, opts: opts, network: on}
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
}

// layers are the checks of the way to the service, the nearest to this machine first. A failure of one makes those that come later
// fail, and so all checks that are not named here.
var layers = []string{"account", "proxy", "name", "tls", "intermediary", "clock"}

func (f finding) layer() int {
	if i := slices.Index(layers, f.Check); i >= 0 {
		return i
	}
	return len(layers)
}

// explained puts the cause first, and marks what follows from it: failures that are farther away, and those for the same reason. A
// way that lets nothing through explains the rest; something that changes responses does not explain a missing permission.
func explained(all []finding) (sorted []finding, cause string) {
	first := -1
	for i, f := range all {
		if f.Status == failed && (first < 0 || f.layer() < all[first].layer()) {
			first = i
		}
	}
	if first < 0 {
		return all, ""
	}
	root := all[first]
	sorted = []finding{root}
	for i, f := range all {
		if i == first {
			continue
		}
		if f.Status == failed && (f.layer() > root.layer() || f.Found == root.Found || f.Cure == root.Cure) {
			f.Follows = true
		}
		sorted = append(sorted, f)
	}
	return sorted, root.Check
}

// patient is an examination.
type patient struct {
	f       *cli.Factory
	opts    options
	network network

	findings []finding
	ahead    []time.Duration // of the service's clock: that of this machine, by each response
}

// add reports what a check has found, once: many responses may show it.
func (p *patient) add(check string, s status, cure, format string, args ...any) {
	if f := (finding{Check: check, Status: s, Found: fmt.Sprintf(format, args...), Cure: cure}); !slices.Contains(p.findings, f) {
		p.findings = append(p.findings, f)
	}
}

// refused adds the failure of a request, as a command would report it. That of a proxy, or of TLS, is one of the way.
func (p *patient) refused(check, on string, err error) {
	if layer, found, cure := onTheWay(err); layer != "" {
		p.add(layer, failed, cure, "%s", found)
		p.add(check, failed, cure, "%s", found)
		return
	}
	v := fail.Judge(err)
	p.add(check, failed, fail.Hint(err, v, check, on), "%s", fail.Message(err, v, check, on))
}

// examine makes all checks. A check that needs an earlier one that failed is left out.
func (p *patient) examine(ctx context.Context) {
	account := p.account()
	if account == nil {
		return
	}
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

func (r result) Text(w io.Writer) {
	width := 0
	for _, c := range r.Checks {
		width = max(width, len(c.Check))
	}
	for _, c := range r.Checks {
		found := c.Found
		if c.Follows {
			found = "follows: " + found
		}
		fmt.Fprintf(w, "%-8s %-*s  %s\n", c.Status, width, c.Check, found)
		if c.Cure != "" && !c.Follows {
			fmt.Fprintf(w, "%-8s %-*s  do: %s\n", "", width, "", c.Cure)
		}
	}
	if r.Failed > 0 {
		return // the error says how many
	}
	fmt.Fprintf(w, "%s, none failed, %s\n", show.Plural(len(r.Checks), "check"), show.Plural(r.Warnings, "warning"))
}

func (p *patient) conclude() (cli.Result, error) {
	r := result{Outcome: "healthy", Cost: p.f.Cost()}
	r.Checks, r.Cause = explained(p.findings)
	for _, c := range r.Checks {
		switch c.Status {
		case failed:
			r.Failed++
		case warning:
			r.Warnings++
		}
	}
	if r.Failed == 0 {
		return r, nil
	}
	if !p.f.JSON() { // which prints one object, that of the error
		if err := p.f.Print(r); err != nil {
			return nil, err
		}
	}
	return nil, &unhealthy{r}
}

// unhealthy is the end of an examination that has found something wrong.
type unhealthy struct{ result }

func (e *unhealthy) Error() string {
	return fmt.Sprintf("%d of %d checks failed; the cause: %s: %s", e.Failed, len(e.Checks), e.Cause, e.Checks[0].Found)
}

func (*unhealthy) Verdict() fail.Verdict {
	return fail.Verdict{Code: fail.ExitFailed, Outcome: "failed"}
}

func (e *unhealthy) Facts() map[string]any {
	return map[string]any{"cause": e.Cause, "checks": e.Checks, "failed": e.Failed, "warnings": e.Warnings, "requests": e.Requests, "elapsed_ms": e.ElapsedMS}
}
