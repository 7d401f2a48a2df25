package counter

import (
	"errors"

	"github.com/spf13/cobra"

	"github.com/azconc/azconc/cmd/azconc/internal/cli"
	"github.com/azconc/azconc/cmd/azconc/internal/cli/fail"
	"github.com/azconc/azconc/cmd/azconc/internal/cli/ref"
	"github.com/azconc/azconc/cmd/azconc/internal/cli/show"
	"github.com/azconc/azconc/optimistic"
	"github.com/azconc/azconc/optimistic/blobs"
	"github.com/azconc/azconc/optimistic/sharded"
	"github.com/azconc/azconc/pkg/azerr"
)

func NewCmd(f *cli.Factory) *cobra.Command {
	return cli.NewGroupCmd("counter", "Count in several blobs, beyond what one takes",
		createVerb().Command(f), addVerb().Command(f), getVerb().Command(f), growVerb().Command(f), deleteVerb().Command(f))
}

// counterOf returns the counter of a name.
func counterOf(f *cli.Factory, name ref.Blob) (*sharded.Counter, error) {
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
	}, nil)
}

func parse(arg string) (ref.Blob, error) {
	r, err := ref.ParseWritable(arg)
	if err == nil && len(r.Blob) > 1000 {
		return r, fail.Usagef("the counter's name has %d bytes: the limit is 1000", len(r.Blob))
	}
	return r, err
}

// checkShards refuses a number of shards that no counter has.
func checkShards(shards int) error {
	if shards < 1 || shards > sharded.MaxShards {
		return fail.Usagef("--shards %d: it must be 1 to %d", shards, sharded.MaxShards)
	}
	return nil
}

// explained adds the way out to an error.
func explained(err error, name ref.Blob) error {
	deleting := &sharded.DeletingError{}
	switch {
	case errors.As(err, &deleting):
		return err // it says so itself
	case errors.Is(err, sharded.ErrNoCounter):
		return fail.WithHint(err, "choose another name")
	case azerr.Has(err, "ContainerNotFound"):
		return err // it has a hint already
	case errors.Is(err, optimistic.ErrNotFound):
		return fail.WithHint(err, "azconc counter create "+show.Quote(name.String())+" creates it")
	}
	return err
}
