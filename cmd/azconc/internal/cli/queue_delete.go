package cli

import (
	"context"

	"github.com/spf13/cobra"

	"github.com/azconc/azconc/pkg/azerr"
)

// newQueueVerb is a verb that takes a queue and nothing else.
func newQueueVerb(f *Factory, runF func(*queueOptions) error, run func(context.Context, *queueOptions) error) *cobra.Command {
	opts := &queueOptions{factory: f}
	return &cobra.Command{
		Args: resourceArgs("<queue>"),
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

func newQueueDeleteCmd(f *Factory, runF func(*queueOptions) error) *cobra.Command {
	cmd := newQueueVerb(f, runF, queueDeleteRun)
	cmd.Use = "delete <queue>"
	cmd.Short = "Delete a queue and every message in it"
	cmd.Long = `Delete a queue and every message in it. The service accepts no condition here: last writer wins.

The service frees the name about 30 seconds later; until then, creating it again fails with 409 QueueBeingDeleted.`
	cmd.Example = "  azconc queue delete orders"
	return cmd
}

func queueDeleteRun(ctx context.Context, opts *queueOptions) error {
	queue, err := opts.factory.Queue(opts.Queue)
	if err != nil {
		return err
	}
	s, err := sendWrite(ctx, func(ctx context.Context) error {
		_, err := queue.Delete(ctx, nil)
		return err
	})
	// Absence is what was requested, even if another client deleted it.
	if lostAfter(s, err, "QueueNotFound", "QueueBeingDeleted") {
		err = nil
	}
	if err != nil && azerr.Classify(err).Kind != azerr.NotFound {
		err = afterAmbiguous(s, err)
	}
	if err != nil {
		return err
	}
	return opts.factory.printQueue("deleted", opts.Queue, "", s)
}

func newQueueClearCmd(f *Factory, runF func(*queueOptions) error) *cobra.Command {
	cmd := newQueueVerb(f, runF, queueClearRun)
	cmd.Use = "clear <queue>"
	cmd.Short = "Delete every message of a queue"
	cmd.Long = `Delete every message of a queue, including hidden ones, which a consumer has received.

The service does it piece by piece and may time out on a large queue; it is then asked again. A message that is sent
meanwhile may go too: last writer wins.`
	cmd.Example = "  azconc queue clear orders"
	return cmd
}

func queueClearRun(ctx context.Context, opts *queueOptions) error {
	queue, err := opts.factory.Queue(opts.Queue)
	if err != nil {
		return err
	}
	s, err := sendWrite(ctx, func(ctx context.Context) error {
		_, err := queue.ClearMessages(ctx, nil)
		return err
	})
	if err != nil {
		return afterAmbiguous(s, err)
	}
	return opts.factory.printQueue("cleared", opts.Queue, "", s)
}
