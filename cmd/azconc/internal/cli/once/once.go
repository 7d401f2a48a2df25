package once

import (
	"context"
	"encoding/json"
	"fmt"
	"io"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/azconc/azconc/cmd/azconc/internal/cli"
	"github.com/azconc/azconc/cmd/azconc/internal/cli/fail"
	"github.com/azconc/azconc/cmd/azconc/internal/cli/lock"
	"github.com/azconc/azconc/cmd/azconc/internal/cli/queue"
	"github.com/azconc/azconc/cmd/azconc/internal/cli/ref"
	"github.com/azconc/azconc/cmd/azconc/internal/cli/show"
	idem "github.com/azconc/azconc/idempotent/once"
	"github.com/azconc/azconc/pessimistic"
)

func NewCmd(f *cli.Factory) *cobra.Command {
	return cli.NewGroupCmd("once", "Run a command once per key",
		runVerb().Command(f),
		showVerb().Command(f),
		listVerb().Command(f),
		forgetVerb().Command(f),
		gcVerb().Command(f),
	)
}

// options are those of every verb.
type options struct {
	Key     ref.Blob // container and key
	Results string   // table
}

func (o *options) add(set *pflag.FlagSet) {
	set.StringVar(&o.Results, "results", "azconconce", "`table` of the results; created if it is missing")
}

func (o *options) parse(in cli.Input) (err error) {
	if o.Key, err = lock.ParseLock(in.Args[0]); err != nil {
		return err
	}
	if len(o.Key.Blob) > 200 {
		return fail.Usagef("the key has %d bytes: the limit is 200", len(o.Key.Blob))
	}
	return o.checkResults()
}

func (o *options) checkResults() error {
	if _, err := queue.ParseTable(o.Results); err != nil {
		return fmt.Errorf("--results: %w", err)
	}
	return nil
}

// once returns the keys and results, for verbs that run nothing.
func (o *options) once(f *cli.Factory) (*idem.Once, error) {
	k, err := lock.Locker(f, o.Key, nil)
	if err != nil {
		return nil, err
	}
	return o.results(f, k, nil)
}

func (o *options) results(f *cli.Factory, k *pessimistic.Locker, opts *idem.Options) (*idem.Once, error) {
	tables, err := f.TableService()
	if err != nil {
		return nil, err
	}
	return idem.New(k, tables.NewClient(o.Results), opts)
}

// maxKept bounds the stored output of a command: what fits into a property as JSON.
const maxKept = 47 << 10

// keptOutput is a command's output as it is stored.
type keptOutput struct {
	Bytes  int    `json:"bytes"` // of the whole output
	Output []byte `json:"output"`
}

// replay prints the stored result.
func replay(f *cli.Factory, key string, out idem.Result) error {
	var k keptOutput
	if err := json.Unmarshal(out.Value, &k); err != nil {
		return fmt.Errorf("the result stored for %s was not written by azconc once run: %w", key, err)
	}
	if !f.Quiet {
		f.Notef("%s was run before, at %s; this is what it printed", key, show.Time(out.At))
	}
	if k.Bytes > len(k.Output) {
		f.Notef("the output of %s had %d bytes, of which the first %d were kept", key, k.Bytes, len(k.Output))
	}
	_, err := f.Out.Write(k.Output)
	return err
}

type showResult struct {
	Outcome string `json:"outcome"`
	Key     string `json:"resource"`
	At      string `json:"at"`
	Bytes   int    `json:"bytes"`
	Output  string `json:"output"`
}

func (r showResult) Text(w io.Writer) {
	show.Fields(w, "key", r.Key, "done", r.At, "output", fmt.Sprint(r.Bytes, " bytes"))
}

func showVerb() cli.Verb[options] {
	return cli.Verb[options]{
		Use:     "show <container/key>",
		Short:   "Show when a key was completed",
		Long:    "Show when a key was completed and the size of its output; with -o json also the output. If it was not completed, the exit code is 3.",
		Example: "  azconc once show jobs/deploy-42",
		Flags:   (*options).add,
		Parse:   (*options).parse,
		Run:     showRun,
	}
}

func showRun(ctx context.Context, f *cli.Factory, opts *options) error {
	o, err := opts.once(f)
	if err != nil {
		return err
	}
	out, found, err := o.Look(ctx, opts.Key.Blob)
	if err != nil {
		return err
	}
	if !found {
		return &notDone{opts.Key.String()}
	}
	var k keptOutput
	if err := json.Unmarshal(out.Value, &k); err != nil {
		return fmt.Errorf("the result stored for %s was not written by azconc once run: %w", opts.Key, err)
	}
	return f.Print(showResult{Outcome: "done", Key: opts.Key.String(), At: show.Time(out.At), Bytes: k.Bytes, Output: string(k.Output)})
}

// notDone reports that no result is stored for the key.
type notDone struct{ key string }

func (e *notDone) Error() string { return e.key + " was not completed" }
func (*notDone) Verdict() fail.Verdict {
	return fail.Verdict{Code: fail.ExitNotFound, Outcome: "not_found"}
}

func forgetVerb() cli.Verb[options] {
	return cli.Verb[options]{
		Use:     "forget <container/key>",
		Short:   "Forget a completed key, so that its command runs again",
		Long:    "Forget a completed key, so that its command runs again when the key is next used. A command that is running is not affected.",
		Example: "  azconc once forget jobs/deploy-42",
		Flags:   (*options).add,
		Parse:   (*options).parse,
		Run:     forgetRun,
	}
}

type forgetResult struct {
	Outcome string `json:"outcome"`
	Key     string `json:"resource"`
	cli.Cost
}

func (r forgetResult) Text(w io.Writer) { fmt.Fprintln(w, r.Outcome, r.Key) }

func forgetRun(ctx context.Context, f *cli.Factory, opts *options) error {
	o, err := opts.once(f)
	if err != nil {
		return err
	}
	found, err := o.Forget(ctx, opts.Key.Blob)
	if err != nil {
		return err
	}
	if !found {
		return &notDone{opts.Key.String()}
	}
	return f.Print(forgetResult{Outcome: "forgotten", Key: opts.Key.String(), Cost: f.Cost()})
}
