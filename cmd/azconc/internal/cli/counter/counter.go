// Package counter has the verbs of counters in several blobs.
package counter

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strconv"

	"github.com/spf13/cobra"

	"github.com/azconc/azconc/cmd/azconc/internal/cli"
	"github.com/azconc/azconc/cmd/azconc/internal/cli/fail"
	"github.com/azconc/azconc/cmd/azconc/internal/cli/flags"
	"github.com/azconc/azconc/cmd/azconc/internal/cli/ref"
	"github.com/azconc/azconc/cmd/azconc/internal/cli/show"
	"github.com/azconc/azconc/optimistic"
	"github.com/azconc/azconc/optimistic/blobs"
	"github.com/azconc/azconc/optimistic/sharded"
	"github.com/azconc/azconc/pkg/azerr"
)

func NewCmd(f *cli.Factory) *cobra.Command {
	return cli.NewGroupCmd("counter", "Count in several blobs, beyond what one takes",
		newCreateCmd(f), newAddCmd(f), newGetCmd(f), newDeleteCmd(f))
}

// verb makes cmd a verb on a counter.
func verb(f *cli.Factory, cmd *cobra.Command, do func(context.Context, ref.Blob, *sharded.Counter) (cli.Result, error)) *cobra.Command {
	open := func(name ref.Blob) (*sharded.Counter, error) {
		if _, err := f.BlockBlob(name); err != nil {
			return nil, err
		}
		return sharded.NewCounter(name.Blob, func(shard string) optimistic.Target[sharded.Part] {
			at := name
			at.Blob = shard
			client, err := f.BlockBlob(at)
			if err != nil {
				return nil // as above, for the counter's own name
			}
			return blobs.NewJSON[sharded.Part](client)
		}, &sharded.Options{SendOptions: f.Sending()})
	}
	return cli.On(f, cmd, parse, open, func(ctx context.Context, name ref.Blob, c *sharded.Counter) (cli.Result, error) {
		r, err := do(ctx, name, c)
		return r, explained(err, name)
	})
}

func parse(arg string) (ref.Blob, error) {
	r, err := ref.ParseWritable(arg)
	if err == nil && len(r.Blob) > 1000 {
		return r, fail.Usagef("the counter's name has %d bytes: the limit is 1000", len(r.Blob))
	}
	return r, err
}

// explained adds the way out to an error.
func explained(err error, name ref.Blob) error {
	_, deleting := errors.AsType[*sharded.DeletingError](err)
	switch {
	case errors.Is(err, sharded.ErrNoCounter) && !deleting:
		return fail.WithHint(err, "choose another name")
	case errors.Is(err, optimistic.ErrNotFound) && !deleting && !azerr.Has(err, "ContainerNotFound"):
		return fail.WithHint(err, "azconc counter create "+show.Quote(name.String())+" creates it")
	}
	return err // which says so itself
}

type result struct {
	Outcome string `json:"outcome"`
	Counter string `json:"resource"`
	Value   *int64 `json:"value,omitempty"`
	Shards  int    `json:"shards"`
	cli.Cost
}

func (r result) Text(w io.Writer) {
	if r.Value != nil {
		fmt.Fprintln(w, *r.Value)
		return
	}
	fmt.Fprintf(w, "%s %s %s\n", r.Outcome, r.Counter, show.Plural(r.Shards, "shard"))
}

func newCreateCmd(f *cli.Factory) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "create <container/counter>",
		Short: "Create a counter in several blobs",
		Long: `Create a counter with the value 0 in several blobs, its shards. If it exists, nothing changes, and the exit code is 0: its
outcome is "unchanged", and the number of shards is the one it has.

The service carries out about 500 requests a second on one blob; so many shards take that many times as much. The first shard has
the counter's name. The names of the others begin with a hash.`,
		Example: `  azconc counter create jobs/visits --shards 16`,
	}
	shards := 16
	flags.Between(cmd.Flags(), &shards, "shards", sharded.MaxShards, "number of blobs, at most 1000, which stays as it is")
	return verb(f, cmd, func(ctx context.Context, name ref.Blob, c *sharded.Counter) (cli.Result, error) {
		ch, err := c.Create(ctx, shards)
		outcome := "created"
		if !ch.Changed {
			outcome = "unchanged"
		}
		return result{Outcome: outcome, Counter: name.String(), Shards: ch.Shards, Cost: f.Cost()}, err
	})
}

func newGetCmd(f *cli.Factory) *cobra.Command {
	return verb(f, &cobra.Command{
		Use:   "get <container/counter>",
		Short: "Print the value of a counter",
		Long: `Print the value of a counter: the sum of its shards, at one request for each. Everything that was added before is in it. What is
being added meanwhile is in it or not.`,
		Example: `  azconc counter get jobs/visits`,
	}, func(ctx context.Context, name ref.Blob, c *sharded.Counter) (cli.Result, error) {
		sum, err := c.Get(ctx)
		return result{Outcome: "found", Counter: name.String(), Value: &sum.Value, Shards: sum.Shards, Cost: f.Cost()}, err
	})
}

func newDeleteCmd(f *cli.Factory) *cobra.Command {
	return verb(f, &cobra.Command{
		Use:   "delete <container/counter>",
		Short: "Delete a counter with its blobs",
		Long: `Delete a counter with its blobs. What is being added meanwhile is lost. The counter counts as gone from the start; if the command
fails, running it again completes it.`,
		Example: `  azconc counter delete jobs/visits`,
	}, func(ctx context.Context, name ref.Blob, c *sharded.Counter) (cli.Result, error) {
		ch, err := c.Delete(ctx)
		return result{Outcome: "deleted", Counter: name.String(), Shards: ch.Shards, Cost: f.Cost()}, err
	})
}

type addResult struct {
	Outcome   string `json:"outcome"`
	Counter   string `json:"resource"`
	Added     int64  `json:"added"`
	Conflicts int    `json:"conflicts"`
	cli.Sent
}

func (r addResult) Text(w io.Writer) { fmt.Fprintf(w, "%s %d to %s\n", r.Outcome, r.Added, r.Counter) }

func newAddCmd(f *cli.Factory) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "add <container/counter> [<n>]",
		Short: "Add to a counter exactly once",
		Long: `Add n, 1 if it is not given, to a counter exactly once. If a response is lost, azconc determines whether it was added; where it
cannot, the exit code is 5. A negative number follows --. It costs 3 requests, whatever the number of shards, and more after
conflicts. With --op-id it is made to the first of the counter's blobs, at 2 requests.`,
		Example: `  azconc counter add jobs/visits
  azconc counter add jobs/visits 12
  azconc counter add jobs/visits -- -12
  azconc counter add jobs/visits 3 --op-id order-17`,
		Args: func(cmd *cobra.Command, args []string) error {
			if len(args) < 2 {
				return cli.ResourceArgs("<container/counter>")(cmd, args)
			}
			return cli.ResourceArgs("<container/counter>", "<n>")(cmd, args)
		},
	}
	var operation string
	flags.AddOperationID(cmd.Flags(), &operation, "the counter", optimistic.OperationsKept)
	return verb(f, cmd, func(ctx context.Context, name ref.Blob, c *sharded.Counter) (cli.Result, error) {
		n := int64(1)
		if given := cmd.Flags().Arg(1); given != "" {
			var err error
			if n, err = strconv.ParseInt(given, 10, 64); err != nil {
				return nil, fail.WithHint(fail.Usagef("n is %q, which is not a whole number of 64 bits", given), "it looks like 12, or -- -12")
			}
		}
		r, err := c.Add(ctx, n, &sharded.AddOptions{OperationID: operation})
		outcome := "added"
		if r.AlreadyApplied {
			outcome = "already_applied"
		}
		sent := cli.Sent{Ambiguous: r.Ambiguous, Resolved: r.Resolved, Cost: f.Cost()}
		return addResult{Outcome: outcome, Counter: name.String(), Added: n, Conflicts: r.Conflicts, Sent: sent}, err
	})
}
