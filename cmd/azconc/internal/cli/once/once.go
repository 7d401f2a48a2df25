// Package once has the verbs of azconc once.
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
		newRunCmd(f),
		newShowCmd(f),
		newListCmd(f),
		newForgetCmd(f),
	)
}

// table is the name of the table of results.
type table string

func (t *table) add(set *pflag.FlagSet) {
	*t = "azconconce"
	queue.TableFlag(set, (*string)(t), "results", "`table` of the results; created if it is missing (default "+string(*t)+")")
}

// open returns the keys in the container of on, with their results. k is a Locker of that container.
func (t table) open(f *cli.Factory, k *pessimistic.Locker, opts *idem.Options) (*idem.Once, error) {
	client, err := f.Table(ref.Table{Table: string(t)})
	if err != nil {
		return nil, err
	}
	return idem.New(k, client, opts)
}

// on makes cmd a verb that runs nothing.
func on(f *cli.Factory, cmd *cobra.Command, parse func(string) (ref.Blob, error), do func(context.Context, ref.Blob, *idem.Once) (cli.Result, error)) *cobra.Command {
	var results table
	results.add(cmd.Flags())
	open := func(on ref.Blob) (*idem.Once, error) {
		k, err := lock.Locker(f, on, &pessimistic.LockerOptions{Hooks: f.Monitor.Hooks()})
		if err != nil {
			return nil, err
		}
		return results.open(f, k, &idem.Options{Hooks: f.Monitor.Hooks()})
	}
	return cli.On(f, cmd, parse, open, do)
}

// parseKey reads container/key.
func parseKey(arg string) (ref.Blob, error) {
	key, err := lock.ParseLock(arg)
	if err == nil && len(key.Blob) > 200 {
		err = fail.Usagef("the key has %d bytes: the limit is 200", len(key.Blob))
	}
	return key, err
}

// maxKept bounds the stored output of a command: what fits into a property as JSON.
const maxKept = 47 << 10

// keptOutput is a command's output as it is stored.
type keptOutput struct {
	Bytes  int    `json:"bytes"` // of the whole output
	Output []byte `json:"output"`
}

func readKept(key string, out idem.Result) (k keptOutput, err error) {
	if err := json.Unmarshal(out.Value, &k); err != nil {
		return k, fmt.Errorf("the result stored for %s was not written by azconc once run: %w", key, err)
	}
	return k, nil
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

func newShowCmd(f *cli.Factory) *cobra.Command {
	cmd := &cobra.Command{
		Use:     "show <container/key>",
		Short:   "Show when a key was completed",
		Long:    "Show when a key was completed and the size of its output; with -o json also the output. If it was not completed, the exit code is 3.",
		Example: "  azconc once show jobs/deploy-42",
	}
	return on(f, cmd, parseKey, func(ctx context.Context, key ref.Blob, o *idem.Once) (cli.Result, error) {
		out, found, err := o.Look(ctx, key.Blob)
		if err != nil {
			return nil, err
		}
		if !found {
			return nil, notDone(key)
		}
		k, err := readKept(key.String(), out)
		return showResult{Outcome: "done", Key: key.String(), At: show.Time(out.At), Bytes: k.Bytes, Output: string(k.Output)}, err
	})
}

// notDone returns the error for a key without a result.
func notDone(key ref.Blob) error {
	return fail.Judged(fail.ExitNotFound, "not_found", fmt.Errorf("%v was not completed", key))
}

func newForgetCmd(f *cli.Factory) *cobra.Command {
	cmd := &cobra.Command{
		Use:     "forget <container/key>",
		Short:   "Forget a completed key, so that its command runs again",
		Long:    "Forget a completed key, so that its command runs again when the key is next used. A command that is running is not affected.",
		Example: "  azconc once forget jobs/deploy-42",
	}
	return on(f, cmd, parseKey, func(ctx context.Context, key ref.Blob, o *idem.Once) (cli.Result, error) {
		found, err := o.Forget(ctx, key.Blob)
		if err == nil && !found {
			err = notDone(key)
		}
		return f.Done("forgotten", key.String(), 0), err
	})
}
