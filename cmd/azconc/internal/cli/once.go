package cli

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"time"

	"github.com/spf13/cobra"

	"github.com/azconc/azconc/idempotent"
	"github.com/azconc/azconc/pessimistic"
	"github.com/azconc/azconc/pkg/azerr"
)

func newOnceCmd(f *Factory) *cobra.Command {
	return newGroupCmd("once", "Run a command once per key", newOnceRunCmd(f, nil), newOnceShowCmd(f, nil), newOnceForgetCmd(f, nil), newOnceGCCmd(f, nil))
}

// onceOptions are those of every verb.
type onceOptions struct {
	factory *Factory
	Key     blobRef // container and key
	Results string  // table
}

func (o *onceOptions) add(cmd *cobra.Command) {
	cmd.Flags().StringVar(&o.Results, "results", "azconconce", "`table` of the results; created if it is missing")
}

func (o *onceOptions) parse(arg string) (err error) {
	if o.Key, err = parseLock(arg); err != nil {
		return err
	}
	if len(o.Key.Blob) > 200 {
		return usagef("the key has %d bytes: the limit is 200", len(o.Key.Blob))
	}
	return o.checkResults()
}

func (o *onceOptions) checkResults() error {
	if o.Results == "" {
		return usagef("--results is empty")
	}
	return checkTable("--results", o.Results)
}

func (o *onceOptions) once(locks *pessimistic.LockerOptions) (*idempotent.Once, error) {
	k, err := o.factory.locker(o.Key, locks)
	if err != nil {
		return nil, err
	}
	tables, err := o.factory.TableService()
	if err != nil {
		return nil, err
	}
	return idempotent.NewOnce(k, tables.NewClient(o.Results))
}

// withTable creates the table of the results if it is missing.
func (o *onceOptions) withTable(ctx context.Context, do func() error) error {
	err := do()
	if !azerr.Has(err, "TableNotFound") {
		return err
	}
	tables, made := o.factory.TableService()
	if made == nil {
		_, made = sendWrite(ctx, func(ctx context.Context) error {
			_, err := tables.CreateTable(ctx, o.Results, nil)
			if azerr.Has(err, "TableAlreadyExists") {
				return nil
			}
			return err
		})
	}
	if made != nil {
		return made
	}
	return do()
}

// maxKept is how much of a command's output is kept: what fits into a property as JSON.
const maxKept = 47 << 10

// keptOutput is a command's output as it is stored.
type keptOutput struct {
	Bytes  int    `json:"bytes"` // of all there was
	Output []byte `json:"output"`
}

// replay prints the stored result.
func (f *Factory) replay(key string, out idempotent.Outcome) error {
	var k keptOutput
	if err := json.Unmarshal(out.Result, &k); err != nil {
		return fmt.Errorf("what is stored for %s was not stored by azconc once run: %w", key, err)
	}
	if k.Bytes > len(k.Output) {
		f.Notef("the output of %s had %d bytes, of which the first %d were kept", key, k.Bytes, len(k.Output))
	}
	_, err := f.Out.Write(k.Output)
	return err
}

type onceShowResult struct {
	Outcome string `json:"outcome"`
	Key     string `json:"resource"`
	At      string `json:"at"`
	Bytes   int    `json:"bytes"`
	Output  string `json:"output"`
}

func (r onceShowResult) text(w io.Writer) {
	printFields(w, "key", r.Key, "done", r.At, "output", fmt.Sprint(r.Bytes, " bytes"))
}

func newOnceShowCmd(f *Factory, runF func(*onceOptions) error) *cobra.Command {
	cmd := newOnceVerb(f, runF, onceShowRun)
	cmd.Use = "show <container/key>"
	cmd.Short = "Show when a key was completed"
	cmd.Long = "Show when a key was completed and the size of its output; with -o json also the output. If it was not completed, the exit code is 3."
	cmd.Example = "  azconc once show jobs/deploy-42"
	return cmd
}

func onceShowRun(ctx context.Context, opts *onceOptions) error {
	o, err := opts.once(nil)
	if err != nil {
		return err
	}
	out, found, err := o.Look(ctx, opts.Key.Blob)
	if err != nil && !azerr.Has(err, "TableNotFound") {
		return err
	}
	if !found {
		return &notDone{opts.Key.String()}
	}
	var k keptOutput
	if err := json.Unmarshal(out.Result, &k); err != nil {
		return fmt.Errorf("what is stored for %s was not stored by azconc once run: %w", opts.Key, err)
	}
	return opts.factory.Print(onceShowResult{Outcome: "done", Key: opts.Key.String(), At: timeText(out.At), Bytes: k.Bytes, Output: string(k.Output)})
}

// notDone is that nothing is stored.
type notDone struct{ key string }

func (e *notDone) Error() string  { return e.key + " was not completed" }
func (*notDone) verdict() verdict { return verdict{exitNotFound, "not_found"} }

func newOnceForgetCmd(f *Factory, runF func(*onceOptions) error) *cobra.Command {
	cmd := newOnceVerb(f, runF, onceForgetRun)
	cmd.Use = "forget <container/key>"
	cmd.Short = "Forget a completed key, so that its command runs again"
	cmd.Long = "Forget a completed key, so that its command runs again when the key is next used. A command that is running is not affected."
	cmd.Example = "  azconc once forget jobs/deploy-42"
	return cmd
}

type onceForgetResult struct {
	Outcome   string `json:"outcome"`
	Key       string `json:"resource"`
	Requests  int64  `json:"requests"`
	ElapsedMS int64  `json:"elapsed_ms"`
}

func (r onceForgetResult) text(w io.Writer) { fmt.Fprintln(w, r.Outcome, r.Key) }

func onceForgetRun(ctx context.Context, opts *onceOptions) error {
	f := opts.factory
	o, err := opts.once(nil)
	if err != nil {
		return err
	}
	found, err := o.Forget(ctx, opts.Key.Blob)
	if err != nil && !azerr.Has(err, "TableNotFound") {
		return err
	}
	if !found {
		return &notDone{opts.Key.String()}
	}
	return f.Print(onceForgetResult{Outcome: "forgotten", Key: opts.Key.String(), Requests: f.requests.Load(), ElapsedMS: time.Since(f.began).Milliseconds()})
}

func newOnceVerb(f *Factory, runF func(*onceOptions) error, run func(context.Context, *onceOptions) error) *cobra.Command {
	opts := &onceOptions{factory: f}
	cmd := &cobra.Command{
		Args: resourceArgs("<container/key>"),
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := opts.parse(args[0]); err != nil {
				return err
			}
			if runF != nil {
				return runF(opts)
			}
			return run(cmd.Context(), opts)
		},
	}
	opts.add(cmd)
	return cmd
}
