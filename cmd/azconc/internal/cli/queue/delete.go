package queue

import (
	"context"

	"github.com/spf13/cobra"

	"github.com/azconc/azconc/cmd/azconc/internal/cli"
	"github.com/azconc/azconc/cmd/azconc/internal/cli/lease"
	"github.com/azconc/azconc/pkg/azerr"
)

// newVerb is a verb that takes a queue and nothing else.
func newVerb(f *cli.Factory, runF func(*options) error, run func(context.Context, *options) error) *cobra.Command {
	opts := &options{factory: f}
	return &cobra.Command{
		Args: cli.ResourceArgs("<queue>"),
		RunE: func(cmd *cobra.Command, args []string) (err error) {
			if opts.Queue, err = parseQueue(args[0]); err != nil {
				return err
			}
			if runF != nil {
				return runF(opts)
			}
			return run(cmd.Context(), opts)
		},
	}
}

func newDeleteCmd(f *cli.Factory, runF func(*options) error) *cobra.Command {
	cmd := newVerb(f, runF, deleteRun)
	cmd.Use = "delete <queue>"
	cmd.Short = "Delete a queue and every message in it"
	cmd.Long = `Delete a queue and every message in it. The service accepts no condition here: last writer wins.

The service frees the name about 30 seconds later; until then, creating it again fails with 409 QueueBeingDeleted.`
	cmd.Example = "  azconc queue delete orders"
	return cmd
}

func deleteRun(ctx context.Context, opts *options) error {
	queue, err := opts.factory.Queue(opts.Queue)
	if err != nil {
		return err
	}
	s, err := cli.SendWrite(ctx, func(ctx context.Context) error {
		_, err := queue.Delete(ctx, nil)
		return err
	})
	// Absence is what was requested, even if another client deleted it.
	if lease.LostAfter(s, err, "QueueNotFound", "QueueBeingDeleted") {
		err = nil
	}
	if err != nil && azerr.Classify(err).Kind != azerr.NotFound {
		err = cli.AfterAmbiguous(s, err)
	}
	if err != nil {
		return err
	}
	return printQueue(opts.factory, "deleted", opts.Queue, "", s)
}

func newClearCmd(f *cli.Factory, runF func(*options) error) *cobra.Command {
	cmd := newVerb(f, runF, clearRun)
	cmd.Use = "clear <queue>"
	cmd.Short = "Delete every message of a queue"
	cmd.Long = `Delete every message of a queue, including hidden ones, which a consumer has received.

The service does it piece by piece and may time out on a large queue; it is then asked again. A message that is sent
meanwhile may go too: last writer wins.`
	cmd.Example = "  azconc queue clear orders"
	return cmd
}

func clearRun(ctx context.Context, opts *options) error {
	queue, err := opts.factory.Queue(opts.Queue)
	if err != nil {
		return err
	}
	s, err := cli.SendWrite(ctx, func(ctx context.Context) error {
		_, err := queue.ClearMessages(ctx, nil)
		return err
	})
	if err != nil {
		return cli.AfterAmbiguous(s, err)
	}
	return printQueue(opts.factory, "cleared", opts.Queue, "", s)
}
